"""Persister: the store of share partitions' state.

`CoordinatorPersister` uses the share coordinator of this broker; `NoOpPersister` stores nothing. The last part of the
class name in group.share.persister.class.name selects one. Source: Kafka's Persister, DefaultStatePersister and
NoOpStatePersister (KIP-932).
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
"""A coordinator that loads its partition is ready after milliseconds, or after a few seconds: Kafka retries after one,
and up to five times."""

TRANSIENT = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Persister(Protocol):
    """The store; all methods raise KafkaError."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """Writes an initial state; with start offset -1 the group's reset strategy decides where it begins."""
        ...

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        """Returns the state, and fences writes of earlier leaders of the partition."""
        ...

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        """Writes a change of the state, and returns a future, which may be done already: acknowledgements wait for
        it."""
        ...

    async def summary(self, key: ShareKey) -> Summary:
        """Returns the state's epochs, start offset and delivery-complete count."""
        ...

    async def delete(self, key: ShareKey) -> None:
        """Deletes the state."""
        ...


class CoordinatorPersister:
    """The default: the state is in the share coordinator, which on one node is here."""

    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        await self._decide(
            key, lambda shard, ticket, now_ms: shard.initialize(key, state_epoch, start_offset, ticket, now_ms)
        )

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        return await self._decide(key, lambda shard, ticket, now_ms: shard.read(key, leader_epoch, ticket, now_ms))

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        return self._coordinator.decide(key, lambda shard, ticket, now_ms: shard.write(key, written, ticket, now_ms))

    async def summary(self, key: ShareKey) -> Summary:
        return await self._decide(key, lambda shard, ticket, now_ms: shard.summary(key, ticket, now_ms))

    async def delete(self, key: ShareKey) -> None:
        await self._decide(key, lambda shard, ticket, now_ms: shard.delete(key, ticket, now_ms))

    async def _decide(self, key: ShareKey, decide: Decide[A]) -> A:
        """Returns the shard's answer; retries while the coordinator is not ready. Raises any other KafkaError."""
        pause_s = FIRST_RETRY_S
        for attempt in range(ATTEMPTS):
            try:
                await self._coordinator.ensure_topic(key)
                return await self._coordinator.decide(key, decide)
            except KafkaError as error:
                client_error = seen_by_client(error)
                if client_error.code not in TRANSIENT or attempt == ATTEMPTS - 1:
                    raise client_error from error
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LAST_RETRY_S)
        raise AssertionError("the last attempt returns or raises")


class NoOpPersister:
    """Stores nothing: each leader begins where the group's reset strategy says."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """Does nothing."""

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
        """Does nothing."""


PERSISTERS: dict[str, Callable[[ShareCoordinator], Persister]] = {
    "DefaultStatePersister": CoordinatorPersister,
    "NoOpStatePersister": lambda _: NoOpPersister(),
}
"""Makes a persister, by the last part of group.share.persister.class.name."""


def make_persister(class_name: str, coordinator: ShareCoordinator) -> Persister:
    """Returns the persister of that class. Raises INVALID_CONFIG for a class that is neither of Kafka's two."""
    make = PERSISTERS.get(class_name.rpartition(".")[2])
    if make is None:
        names = ", ".join(PERSISTERS)
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"group.share.persister.class.name {class_name}: it must be one of {names}"
        )
    return make(coordinator)
