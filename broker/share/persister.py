"""Persister: the store of share group state.

`CoordinatorPersister` uses the share coordinator, on any broker; `NoOpPersister` stores nothing. The last part of the
class name in group.share.persister.class.name selects one. Source: Kafka's Persister, DefaultStatePersister and
NoOpStatePersister (KIP-932).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from broker.clock import pause
from broker.shards.shares import ShareCoordinator
from broker.shards.translations import seen_by_client
from broker.share.state_operations import DeleteState, InitializeState, StateOperation, WriteState
from client.futures import retrieve
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy

if TYPE_CHECKING:
    from broker.share import state_requests
else:  # with the first coordinator elsewhere
    state_requests = lazy("broker.share.state_requests")

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
    """The store."""

    def submit(self, operation: StateOperation[A]) -> asyncio.Future[A]:
        """Performs an operation. Returns the answer's future, which is done if there is nothing to wait for. It raises
        KafkaError."""
        ...


class UnfinishedOperations:
    """The operations on one share partition that are not over."""

    __slots__ = ("delaying", "last", "written")

    def __init__(self) -> None:
        self.last: asyncio.Future[None] | None = None
        """The end of the last operation and of all before it."""
        self.delaying = 0
        """Number of operations that later ones must wait for."""
        self.written: StateWrite | None = None
        """The last write."""


class CoordinatorPersister:
    """The default: the share coordinator, here or on another broker, stores the state.

    An operation that can be done here at once is done at once, unless an earlier one on its share partition waits or is
    repeated; writes and reads that wait only for their commit here delay no others. All others are done one after the
    other. A write that times out here is repeated, although it may be in the log, and may follow later writes: the
    repeat has the start offset of the last one, because records below it may be acknowledged. Batches of writes in
    flight don't overlap.
    """

    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator
        self._in_flight: dict[ShareKey, UnfinishedOperations] = {}

    def submit(self, operation: StateOperation[A]) -> asyncio.Future[A]:
        key = operation.key
        in_flight = self._in_flight.get(key) or UnfinishedOperations()
        if isinstance(operation, WriteState):
            in_flight.written = operation.written
        answer: asyncio.Future[A] | None = None
        if not in_flight.delaying:
            try:
                answer = self._coordinator.submit(key, operation.decide)
            except KafkaError as error:
                if self._is_final(key, seen_by_client(error)):
                    answer = asyncio.get_running_loop().create_future()
                    answer.set_exception(error)
        if answer is not None and answer.done():
            retrieve(answer)
            return answer
        self._in_flight[key] = in_flight
        before = in_flight.last
        over = in_flight.last = asyncio.get_running_loop().create_future()
        delays = answer is None or isinstance(operation, InitializeState | DeleteState)
        in_flight.delaying += delays
        task = asyncio.ensure_future(self._perform(operation, in_flight, before, answer, delays=delays))
        task.add_done_callback(partial(self._end, key, before, over, delays))
        return task

    async def _perform(
        self,
        operation: StateOperation[A],
        in_flight: UnfinishedOperations,
        before: asyncio.Future[None] | None,
        answer: asyncio.Future[A] | None,
        *,
        delays: bool,
    ) -> A:
        """Returns this broker's answer. If there is none, or this broker is no longer the coordinator before the
        commit, performs the operation after all operations before it. Raises KafkaError as clients see it."""
        if answer is not None:
            try:
                return await answer
            except KafkaError as error:
                if self._is_final(operation.key, seen_by_client(error)):
                    raise
        repeats = not delays
        in_flight.delaying += repeats
        try:
            if before is not None:
                await asyncio.wait([before])
            return await self._tried(operation, in_flight)
        finally:
            in_flight.delaying -= repeats

    def _end(
        self, key: ShareKey, before: asyncio.Future[None] | None, over: asyncio.Future[None], delays: bool, _: object
    ) -> None:
        """Ends an operation, once all operations before it have ended: later ones wait for them too."""
        if before is not None and not before.done():
            before.add_done_callback(partial(self._end, key, before, over, delays))
            return
        over.set_result(None)
        in_flight = self._in_flight[key]
        in_flight.delaying -= delays
        if in_flight.last is over:
            del self._in_flight[key]

    async def _tried(self, operation: StateOperation[A], in_flight: UnfinishedOperations) -> A:
        """Returns the coordinator's answer; retries while the coordinator moves or isn't ready."""
        clock = self._coordinator.environment.clock
        give_up_ms = clock.monotonic_ms() + GIVE_UP_MS
        failures = 0
        while True:
            try:
                return await self._attempt(operation.after(in_flight.written))
            except KafkaError as error:
                client_error = seen_by_client(error)
                if self._is_final(operation.key, client_error) or clock.monotonic_ms() >= give_up_ms:
                    raise client_error from None
            failures += 1
            await pause(clock, BACKOFF.delay_ms(failures))

    async def _attempt(self, operation: StateOperation[A]) -> A:
        coordinator, key = self._coordinator, operation.key
        await coordinator.ensure_topic(key)
        broker_id = coordinator.elsewhere(coordinator.index_of(key))
        if broker_id is None:
            return await coordinator.submit(key, operation.decide)
        return await coordinator.environment.anywhere().submit(
            broker_id, state_requests.packing_of(operation), operation
        )

    def _is_final(self, key: ShareKey, error: KafkaError) -> bool:
        """True if a retry can't have another result. False while the coordinator moves or loads, or doesn't know a
        partition yet that this broker knows.
        """
        topic = self._coordinator.environment.image.topic_by_id(key.topic_id)
        is_known = topic is not None and key.partition in topic.partitions
        return error.code not in (TRANSIENT_OF_KNOWN_PARTITIONS if is_known else TRANSIENT)


class NoOpPersister:
    """Stores nothing: each new leader starts where the group's share.auto.offset.reset says."""

    def submit(self, operation: StateOperation[A]) -> asyncio.Future[A]:
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        answer.set_result(operation.unstored())
        return answer
