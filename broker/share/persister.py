"""Persister: where share partitions keep their state, whoever keeps it.

`CoordinatorPersister` asks the share coordinator of this broker; `NoOpPersister` forgets everything. Which one is
used, group.share.persister.class.name says, by the last part of a class name. Source: Kafka's Persister,
DefaultStatePersister and NoOpStatePersister (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from broker.coordinators.shares import Decide, ShareCoordinator
from broker.coordinators.translations import seen_by_client
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:  # imported with the first share partition
    from coordinator.share.records import ShareState
    from coordinator.share.shard import StateWrite, Summary

A = TypeVar("A")

ATTEMPTS = 10
FIRST_RETRY_S = 0.005
LAST_RETRY_S = 1.0
"""A coordinator that loads its partition is ready after milliseconds, or after a few seconds: Kafka asks again after
one, and up to five times."""

PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Persister(Protocol):
    """All raise KafkaError. `write` answers by a future that may be done, since acknowledgements wait for it."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """A state to begin with; start offset -1 leaves it to the group's reset strategy."""
        ...

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        """The state, for the leader of the partition."""
        ...

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        """What has changed."""
        ...

    async def summary(self, key: ShareKey) -> Summary:
        """Epochs, start offset and delivery-complete count."""
        ...

    async def delete(self, key: ShareKey) -> None:
        """The state is forgotten."""
        ...


class CoordinatorPersister:
    """The default: the share coordinator, which on one node is here."""

    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        await self._ask(
            key, lambda shard, ticket, now_ms: shard.initialize(key, state_epoch, start_offset, ticket, now_ms)
        )

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        return await self._ask(key, lambda shard, ticket, now_ms: shard.read(key, leader_epoch, ticket, now_ms))

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        return self._coordinator.decide(key, lambda shard, ticket, now_ms: shard.write(key, written, ticket, now_ms))

    async def summary(self, key: ShareKey) -> Summary:
        return await self._ask(key, lambda shard, ticket, now_ms: shard.summary(key, ticket, now_ms))

    async def delete(self, key: ShareKey) -> None:
        await self._ask(key, lambda shard, ticket, now_ms: shard.delete(key, ticket, now_ms))

    async def _ask(self, key: ShareKey, decide: Decide[A]) -> A:
        """Asks until the coordinator is ready, or one that says no."""
        pause_s = FIRST_RETRY_S
        for attempt in range(ATTEMPTS):
            try:
                await self._coordinator.ensure_topic(key)
                return await self._coordinator.decide(key, decide)
            except KafkaError as error:
                seen = seen_by_client(error)
                if seen.code not in PASSING or attempt == ATTEMPTS - 1:
                    raise seen from error
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LAST_RETRY_S)
        raise AssertionError("the last attempt returns or raises")


class NoOpPersister:
    """Keeps nothing: each leader begins where the group's reset strategy says."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """Nothing to do."""

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        from coordinator.share.records import ShareState

        return ShareState(0, 0, leader_epoch, -1, -1, 0, 0)

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def summary(self, key: ShareKey) -> Summary:
        from coordinator.share.shard import Summary

        return Summary()

    async def delete(self, key: ShareKey) -> None:
        """Nothing to do."""


PERSISTERS: dict[str, Callable[[ShareCoordinator], Persister]] = {
    "DefaultStatePersister": CoordinatorPersister,
    "NoOpStatePersister": lambda _: NoOpPersister(),
}
"""By the last part of group.share.persister.class.name."""


def make_persister(class_name: str, coordinator: ShareCoordinator) -> Persister:
    """Raises INVALID_CONFIG for a class that is neither of Kafka's two."""
    make = PERSISTERS.get(class_name.rpartition(".")[2])
    if make is None:
        known = ", ".join(PERSISTERS)
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"group.share.persister.class.name {class_name}: it must be one of {known}"
        )
    return make(coordinator)
