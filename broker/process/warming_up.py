"""Imports the modules that a start leaves out, once the broker is ready, one at a time between requests."""

from __future__ import annotations

import asyncio
import gc
from importlib import import_module

from broker.handlers import APIS

FIRST_USES = (
    "coordinator.cluster.allocate_producer_ids",
    "coordinator.cluster.configs.alter",
    "coordinator.cluster.topics.create",
    "coordinator.cluster.topics.create_partitions",
    "coordinator.cluster.topics.delete",
    "coordinator.group.shard",
    "coordinator.group.consumer.patterns",
    "coordinator.transaction.shard",
    "coordinator.share.shard",
    "broker.share.hosted",
    "broker.share.initializing",
)
"""The modules that the first topic, group, transaction and share partition need beside the handlers."""


async def warm_up() -> None:
    """Imports the handlers of APIs that had no request yet, and the modules of FIRST_USES."""
    for _ in APIS:
        await asyncio.sleep(0)
    for name in FIRST_USES:
        import_module(name)
        await asyncio.sleep(0)
    gc.freeze()
