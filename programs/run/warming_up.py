"""Imports the modules that the start skips, once the broker is ready, one at a time between requests."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING

from broker.clock import next_turn
from broker.config import BrokerConfig
from broker.dispatch.api import Apis
from broker.handlers import APIS
from broker.network.memory_back import trim
from coordinator.cluster.decisions import DECISIONS
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.handlers import controller
else:  # on a node with a controller
    controller = lazy("broker.handlers.controller")

FIRST_USES_OF_BROKERS = (
    "coordinator.group.shard",
    "broker.shards.patterns",
    "coordinator.transaction.shard",
    "coordinator.share.shard",
    "broker.share.hosted",
    "broker.share.initializing",
)
"""The modules that the first group, transaction and share partition need, in addition to the handlers."""


async def warm_up(config: BrokerConfig) -> None:
    """Imports the handlers that have had no request yet, and other modules that are needed later, for this node's
    roles."""
    for table in _tables(config):
        for _ in table:
            await next_turn()
    for row in () if config.has_remote_controllers else DECISIONS.values():
        row.load()
        await next_turn()
    for name in FIRST_USES_OF_BROKERS if config.is_broker else ():
        import_module(name)
        await next_turn()
    gc.freeze()
    if (malloc_trim := trim()) is not None:
        malloc_trim(0)  # what the imports no longer need


def _tables(config: BrokerConfig) -> list[Apis]:
    tables = [APIS] if config.is_broker else []
    if config.bound_controllers:
        tables.append(controller.CONTROLLER_APIS)
    return tables
