"""Imports the modules that the start skips, once the broker is ready, one at a time between requests."""

from __future__ import annotations

import asyncio
import gc
from importlib import import_module

from broker.config import BrokerConfig
from broker.handlers import APIS
from broker.requests.api import Apis

FIRST_USES_OF_CONTROLLERS = (
    "coordinator.cluster.allocate_producer_ids",
    "coordinator.cluster.configs.alter",
    "coordinator.cluster.topics.create",
    "coordinator.cluster.topics.create_partitions",
    "coordinator.cluster.topics.delete",
)
"""The modules that a controller needs for the first topic, in addition to the handlers."""

FIRST_USES_OF_BROKERS = (
    "coordinator.group.shard",
    "coordinator.group.consumer.patterns",
    "coordinator.transaction.shard",
    "coordinator.share.shard",
    "broker.share.hosted",
    "broker.share.initializing",
)
"""The modules that the first group, transaction and share partition need, in addition to the handlers."""


async def warm_up(config: BrokerConfig) -> None:
    """Imports the handlers that had no request yet, and the modules of first uses, for this node's roles."""
    for table in _tables(config):
        for _ in table:
            await asyncio.sleep(0)
    for name in (*FIRST_USES_OF_CONTROLLERS, *(FIRST_USES_OF_BROKERS if config.is_broker else ())):
        import_module(name)
        await asyncio.sleep(0)
    gc.freeze()


def _tables(config: BrokerConfig) -> list[Apis]:
    tables = [APIS] if config.is_broker else []
    if config.bound_controllers:
        from broker.handlers.controller import CONTROLLER_APIS

        tables.append(CONTROLLER_APIS)
    return tables
