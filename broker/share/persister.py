"""Persister: the store of share group state.

`CoordinatorPersister` uses the share coordinator, on any broker; `NoOpPersister` stores nothing. The last part of the
class name in group.share.persister.class.name selects one. Source: Kafka's Persister, DefaultStatePersister and
NoOpStatePersister (KIP-932).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from broker.clock import pause
from broker.shards.shares import ShareCoordinator
from broker.shards.translations import seen_by_client
from broker.share.state_operations import StateOperation
from client.futures import retrieve
from coordinator.share.key import ShareKey
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


class CoordinatorPersister:
    """The default: the share coordinator, here or on another broker, stores the state.

    An operation that can be done here at once is done at once; any other is retried for a while. Waiting operations on
    one share partition are done one after the other, so that a retry never overtakes a later operation.
    """

    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator
        self._last: dict[ShareKey, asyncio.Future[None]] = {}
        """The future of the last waiting operation of each share partition."""

    def submit(self, operation: StateOperation[A]) -> asyncio.Future[A]:
        if operation.key in self._last:
            return self._later(operation)
        try:
            answer = self._coordinator.submit(operation.key, operation.decide)
        except KafkaError as error:
            if not self._is_final(operation.key, seen_by_client(error)):
                return self._later(operation)
            answer = asyncio.get_running_loop().create_future()
            answer.set_exception(error)
        if answer.done():
            retrieve(answer)
            return answer
        return asyncio.ensure_future(self._again(operation, answer))

    def _later(self, operation: StateOperation[A]) -> asyncio.Future[A]:
        return asyncio.ensure_future(self._perform(operation))

    async def _again(self, operation: StateOperation[A], answer: asyncio.Future[A]) -> A:
        """Waits for the answer of this broker. If this broker is no longer the coordinator before the commit, sends the
        operation to the new coordinator.
        """
        try:
            return await answer
        except KafkaError as error:
            if self._is_final(operation.key, seen_by_client(error)):
                raise
        return await self._later(operation)

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
    """Stores nothing: each new leader starts by the group's reset strategy."""

    def submit(self, operation: StateOperation[A]) -> asyncio.Future[A]:
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        answer.set_result(operation.unstored())
        return answer
