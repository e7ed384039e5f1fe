"""What a start leaves out is imported once the broker is ready, bit by bit between requests."""

from __future__ import annotations

import asyncio
import gc
from importlib import import_module

from broker.handlers import APIS

RULES = (
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
"""What the first topic, group, transaction and share partition need beside the handlers."""


async def warm_up() -> None:
    """Imports the handlers that nobody has asked for yet, and what they work with."""
    for _ in APIS:
        await asyncio.sleep(0)
    for name in RULES:
        import_module(name)
        await asyncio.sleep(0)
    gc.freeze()
