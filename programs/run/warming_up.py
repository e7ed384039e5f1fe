"""Imports modules that the start skips and that clients are likely to need, once the broker is ready, one at a time
between requests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.clock import next_turn
from broker.config import BrokerConfig
from broker.handlers import APIS
from coordinator.cluster.decisions import DECISIONS
from protocol.api_key import ApiKey
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.handlers import controller
else:  # on a node with a controller
    controller = lazy("broker.handlers.controller")

COMMON: Final = (
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CREATE_TOPICS,
)
"""The APIs that nearly every client uses. The modules of all others would take 5 MB, which few brokers need: a handler
is imported with its first request, which takes some milliseconds, and a coordinator with its first shard."""


async def warm_up(config: BrokerConfig) -> None:
    """Imports the modules for this node's roles that have had no use yet."""
    for _ in _imports(config):
        gc.collect(0)  # a class with slots was made twice: the next module reuses the first one's memory
        await next_turn()
    gc.freeze()


def _imports(config: BrokerConfig) -> Iterator[object]:
    """Imports a module at each step."""
    if config.is_broker:
        yield from map(APIS.find, COMMON)
    if config.bound_controllers:
        yield from controller.CONTROLLER_APIS
        yield from (row.load() for row in DECISIONS.values())
    elif not config.has_remote_controllers:
        yield DECISIONS[ApiKey.CREATE_TOPICS].load()
