"""Persister: the store of share group state.

`CoordinatorPersister` uses the share coordinator, on any broker; `NoOpPersister` stores nothing. The last part of the
class name in group.share.persister.class.name selects one. Source: Kafka's Persister, DefaultStatePersister and
NoOpStatePersister (KIP-932).
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, TypeVar

from broker.clock import pause
from broker.coordinators.shares import ShareCoordinator
from broker.coordinators.translations import seen_by_client
from broker.share.remote_state import RemoteState
from broker.share.state_operations import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    StateOperation,
    WriteState,
)
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareState
from coordinator.share.shard import StateWrite, Summary
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, KafkaError

A = TypeVar("A")

GIVE_UP_MS: Final = 15_000
"""Time after which an operation gives up. Kafka retries five times, after one, two, four and eight seconds; meanwhile a
killed broker's session ends, and another broker leads.
"""

BACKOFF: Final = Backoff(initial_ms=5, max_ms=1_000)
"""A coordinator that loads its partition is ready after milliseconds, or after a few seconds."""

TRANSIENT: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

TRANSIENT_OF_KNOWN_PARTITIONS: Final = TRANSIENT | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Persister(Protocol):
    """The store; all methods raise KafkaError."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """Writes an initial state. With start offset -1, the group's reset strategy decides the start offset."""
        ...

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        """Returns the state, and fences writes of earlier leaders of the partition."""
        ...

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        """Writes a change of the state and returns a future, which may be done already, because acknowledgements wait
        for it.
        """
        ...

    async def summary(self, key: ShareKey) -> Summary:
        """Returns the state's epochs, start offset and delivery-complete count."""
        ...

    async def delete(self, key: ShareKey) -> None:
        """Deletes the state."""
        ...

    def stop(self) -> None:
        """Sends no more requests to other brokers."""
        ...


class CoordinatorPersister:
    """The default: the share coordinator, here or on another broker, stores the state.

    An operation that can be done here at once is done at once; any other is retried for a while. Waiting operations on
    one share partition are done one after the other, so that a retry never overtakes a later operation.
    """

    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator
        self._remote: RemoteState | None = None
        self._last: dict[ShareKey, asyncio.Future[None]] = {}
        """The future of the last waiting operation of each share partition."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        await self._perform(InitializeState(key, state_epoch, start_offset))

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        return await self._perform(ReadState(key, leader_epoch))

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        if key in self._last:
            return self._write_later(key, written)
        try:
            future: asyncio.Future[None] = self._coordinator.submit(
                key, lambda shard, ticket, now_ms: shard.write(key, written, ticket, now_ms)
            )
        except KafkaError as error:
            if self._is_final(key, seen_by_client(error)):
                raise
            return self._write_later(key, written)
        return future if future.done() else asyncio.ensure_future(self._rewritten(key, written, future))

    async def summary(self, key: ShareKey) -> Summary:
        return await self._perform(ReadSummary(key))

    async def delete(self, key: ShareKey) -> None:
        await self._perform(DeleteState(key))

    def stop(self) -> None:
        if self._remote is not None:
            self._remote.stop()

    def _write_later(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._perform(WriteState(key, written)))

    async def _rewritten(self, key: ShareKey, written: StateWrite, future: asyncio.Future[None]) -> None:
        """Waits for a write on this broker. If this broker is no longer the coordinator before the commit, sends the
        write to the new coordinator.
        """
        try:
            await future
        except KafkaError as error:
            if self._is_final(key, seen_by_client(error)):
                raise
            await self._write_later(key, written)

    async def _perform(self, operation: StateOperation[A]) -> A:
        """Performs an operation after the waiting operations before it. Raises KafkaError as clients see it."""
        key = operation.key
        before = self._last.get(key)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._last[key] = over
        try:
            if before is not None:
                await asyncio.wait([before])
            return await self._tried(operation)
        finally:
            over.set_result(None)
            if self._last.get(key) is over:
                del self._last[key]

    async def _tried(self, operation: StateOperation[A]) -> A:
        """Returns the coordinator's answer; retries while the coordinator moves or isn't ready."""
        clock = self._coordinator.environment.clock
        give_up_ms = clock.monotonic_ms() + GIVE_UP_MS
        failures = 0
        while True:
            try:
                return await self._attempt(operation)
            except KafkaError as error:
                client_error = seen_by_client(error)
                if self._is_final(operation.key, client_error) or clock.monotonic_ms() >= give_up_ms:
                    raise client_error from None
            failures += 1
            await pause(clock, BACKOFF.delay_ms(failures))

    async def _attempt(self, operation: StateOperation[A]) -> A:
        coordinator, key = self._coordinator, operation.key
        await coordinator.ensure_topic(key)
        broker_id = coordinator.coordinated_elsewhere(key)
        if broker_id is None:
            return await coordinator.submit(key, operation.decide)
        if self._remote is None:
            self._remote = RemoteState(coordinator.environment.neighbours("share-state"))
        return await self._remote.perform(broker_id, operation)

    def _is_final(self, key: ShareKey, error: KafkaError) -> bool:
        """True if a retry can't have another result. False while the coordinator moves or loads, or doesn't know a
        partition yet that this broker knows.
        """
        topic = self._coordinator.environment.image.topic_by_id(key.topic_id)
        is_known = topic is not None and key.partition in topic.partitions
        return error.code not in (TRANSIENT_OF_KNOWN_PARTITIONS if is_known else TRANSIENT)


class NoOpPersister:
    """Stores nothing: each new leader starts by the group's reset strategy."""

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """Does nothing."""

    async def read(self, key: ShareKey, leader_epoch: int) -> ShareState:
        return ShareState(0, 0, leader_epoch, -1, -1, 0, 0)

    def write(self, key: ShareKey, written: StateWrite) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def summary(self, key: ShareKey) -> Summary:
        return Summary()

    async def delete(self, key: ShareKey) -> None:
        """Does nothing."""

    def stop(self) -> None:
        """Does nothing."""
