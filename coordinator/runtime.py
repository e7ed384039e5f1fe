"""Runs shards: decide → append → apply with no await between, then wait for the commit and release the replies.

A shard is a state machine over one partition of an internal topic (or over the cluster metadata log). Its decisions
read state and return an `Outcome`; only `apply` changes durable state, and loading is `apply` from the log's start.
A shard has no clock, no lock and no rollback: an error comes before `apply`, or the shard is loaded again. A decision
or an expiry that fails because of a bug fails only its own request or timer: the bug is reported, and every other
deadline is kept. Source: Kafka's CoordinatorRuntime
(coordinator-common), KIP-848.

    runtime = Runtime(clock)
    await runtime.load(partition, shard, storage, serde)             # COORDINATOR_LOAD_IN_PROGRESS until it is done
    answer = await runtime.submit(partition, lambda ticket, now_ms: shard.heartbeat(request, ticket, now_ms))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Generic, NoReturn, Protocol, TypeVar

from coordinator.hosted import FAILED, NEVER_MS, REFUSALS, AsAnswer, HostedShard, PendingReplies, Status
from coordinator.outcome import Decision, Outcome, Ticket
from coordinator.refusal import HalfWritten
from coordinator.shard import Serde, Shard, Storage
from protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")
A = TypeVar("A")
E = TypeVar("E")
"""Encoded records: whole batches, or records that a storage gathers into batches."""


class Alarm(Protocol):
    """The result of `call_at`."""

    def cancel(self) -> None: ...


class RuntimeClock(Protocol):
    """The time, and a timer for the whole runtime."""

    def now_ms(self) -> int: ...

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Alarm: ...


OnFault = Callable[[Hashable, Exception], None]
"""Called with the shard's key and an exception that no client can cause."""


def raise_fault(key: Hashable, error: Exception) -> None:
    """Raises a bug at its place, for runtimes without another `on_fault`."""
    raise error


class Runtime(Generic[R]):
    """Shards by key (the partition of their topic), and one timer for all of them."""

    def __init__(
        self,
        clock: RuntimeClock,
        on_failure: Callable[[Hashable, KafkaError], None],
        write_timeout_ms: Callable[[Sequence[R]], int] | None = None,
        as_answer: AsAnswer = lambda error: error,
        on_fault: OnFault = raise_fault,
    ) -> None:
        """`write_timeout_ms` returns the longest time that answers wait for the commit of the given records, or of
        earlier records if there are none; then they fail with REQUEST_TIMED_OUT. None sets no limit. `as_answer`
        translates an error for the waiting requests. `on_fault` is called with every exception that isn't a KafkaError:
        a bug."""
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._as_answer = as_answer
        self._on_failure = on_failure
        self._on_fault = on_fault
        self._hosted: dict[Hashable, HostedShard[R]] = {}
        self._timer: Alarm | None = None
        self._alarm_ms = 0

    async def load(
        self,
        key: Hashable,
        shard: Shard[R],
        storage: Storage[E],
        serde: Serde[R, E],
        loaded: Callable[[int], None] | None = None,
    ) -> None:
        """Hosts a new shard and builds its state from its log; returns when it is active, or was unloaded meanwhile.

        `loaded` is called with the time when all records are applied, so that it can set timers.
        """
        hosted = self._hosted[key] = HostedShard(shard, storage, serde, self._as_answer)
        try:
            async for piece in storage.read():
                if self._hosted.get(key) is not hosted:
                    return
                for record in hosted.decode(piece):
                    shard.apply(record)
        except KafkaError as error:
            if self._hosted.get(key) is hosted:
                self._fail(key, hosted, error)
            raise
        if self._hosted.get(key) is hosted:
            if loaded is not None:
                loaded(self._clock.now_ms())
            self._activate(hosted)
            hosted.appended_to = storage.end_offset  # until this offset is committed, no answer shows the loaded state
            self._await_commit(key, hosted, Outcome(), self._clock.now_ms())

    def unload(self, key: Hashable) -> None:
        """Unloads the shard, because another broker leads its partition: waiting requests get NOT_COORDINATOR."""
        hosted = self._hosted.pop(key, None)
        if hosted is not None:
            hosted.fail(KafkaError(ErrorCode.NOT_COORDINATOR))

    def status(self, key: Hashable) -> Status | None:
        """Returns the shard's status; None if it isn't hosted."""
        hosted = self._hosted.get(key)
        return None if hosted is None else hosted.status

    async def submit(self, key: Hashable, decision: Decision[A, R]) -> A:
        """Decides, writes, and waits for the answer's release. Raises KafkaError: the decision's own, the append's, or
        COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR if no active shard has the key."""
        return await self.begin(key, decision)

    def begin(self, key: Hashable, decision: Decision[A, R]) -> asyncio.Future[A]:
        """Decides and writes. Returns the answer's future, which is done if there is nothing to wait for.

        Raises as `submit` does, unless the future has the error.
        """
        hosted = self._serving(key)
        ticket: Ticket[A] = Ticket()
        now_ms = self._clock.now_ms()
        try:
            outcome = decision(ticket, now_ms)
        except KafkaError:
            raise
        except Exception as error:
            hosted.release_forgotten()
            self._arm(hosted)
            self._on_fault(key, error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(FAILED)) from error
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        hosted.waiting[ticket] = future  # type: ignore[assignment]  # the reply to a ticket has the ticket's type
        try:
            self._write(key, hosted, outcome, now_ms)
        except KafkaError:
            hosted.waiting.pop(ticket, None)
            self._arm(hosted)
            if future.done():
                future.exception()  # the same error is raised here
            raise
        if not future.done() and all(answered.ticket is not ticket for answered in outcome.replies):
            # A later decision answers it: a request that is cancelled by then isn't waited for.
            future.add_done_callback(lambda _: hosted.waiting.pop(ticket, None))
        return future

    def _serving(self, key: Hashable) -> HostedShard[R]:
        hosted = self._hosted.get(key)
        if hosted is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if hosted.status is not Status.ACTIVE:
            raise KafkaError(REFUSALS[hosted.status])
        return hosted

    def _activate(self, hosted: HostedShard[R]) -> None:
        hosted.status = Status.ACTIVE
        self._arm(hosted)

    def _write(self, key: Hashable, hosted: HostedShard[R], outcome: Outcome[R], now_ms: int) -> None:
        """Appends, applies, and releases or holds the replies. A failed append leaves the durable state as it was: its
        error answers all requests that the outcome would have answered, and is raised."""
        if outcome.records:
            try:
                hosted.appended_to = hosted.append(outcome.records, now_ms)
            except Exception as error:
                self._not_written(key, hosted, outcome, error)
            try:
                for record in outcome.records:
                    hosted.shard.apply(record)
            except Exception as error:
                self._not_applied(key, hosted, outcome, error)
        if hosted.appended_to <= hosted.committed_to:
            hosted.release(outcome.replies)
        elif outcome.records or outcome.replies:
            self._await_commit(key, hosted, outcome, now_ms)
        if outcome.then is not None and hosted.status is Status.ACTIVE:
            self._decide_then(key, hosted, outcome.then, now_ms)
        self._arm(hosted)

    def _decide_then(
        self, key: Hashable, hosted: HostedShard[R], then: Callable[[int], Outcome[R]], now_ms: int
    ) -> None:
        """Decides on the state that the records have just made. The records stay, even if this decision fails."""
        try:
            outcome = then(now_ms)
        except KafkaError:
            raise
        except Exception as error:
            hosted.release_forgotten()
            self._on_fault(key, error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(FAILED)) from error
        self._write(key, hosted, outcome, now_ms)

    def _not_written(self, key: Hashable, hosted: HostedShard[R], outcome: Outcome[R], error: Exception) -> NoReturn:
        refusal = error if isinstance(error, KafkaError) else FAILED
        hosted.release([(ticket, refusal) for ticket, _ in outcome.replies])
        if isinstance(error, HalfWritten):
            self._give_up(key, hosted, error)
        if refusal is FAILED:
            self._on_fault(key, error)
        raise KafkaError(refusal.code, refusal.message) from error

    def _not_applied(self, key: Hashable, hosted: HostedShard[R], outcome: Outcome[R], error: Exception) -> NoReturn:
        """Unloads the shard, whose state may be half changed. The decision is in the log, from which the state is
        loaded again."""
        hosted.release([(ticket, FAILED) for ticket, _ in outcome.replies])
        self._give_up(key, hosted, error)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(FAILED)) from error

    def _give_up(self, key: Hashable, hosted: HostedShard[R], error: Exception) -> None:
        """Unloads the shard; waiting requests are told to try again, and reach the shard that is loaded in its
        place."""
        self._fail(key, hosted, KafkaError(ErrorCode.NOT_COORDINATOR, repr(error)))
        self._on_fault(key, error)

    def _await_commit(self, key: Hashable, hosted: HostedShard[R], outcome: Outcome[R], now_ms: int) -> None:
        timeout_ms = NEVER_MS if self._write_timeout_ms is None else self._write_timeout_ms(outcome.records)
        written = PendingReplies(hosted.appended_to, outcome.replies, now_ms + timeout_ms)
        hosted.written.append(written)
        hosted.timeout_ms = min(hosted.timeout_ms, written.deadline_ms)
        hosted.when_committed(written.offset, partial(self._committed, key, hosted, written))

    def _committed(
        self, key: Hashable, hosted: HostedShard[R], written: PendingReplies, error: KafkaError | None
    ) -> None:
        if error is None:
            hosted.settle(written)
        elif hosted.status is Status.ACTIVE:
            self._fail(key, hosted, error)

    def _fail(self, key: Hashable, hosted: HostedShard[R], error: KafkaError) -> None:
        hosted.fail(error)
        self._on_failure(key, error)

    def _arm(self, hosted: HostedShard[R]) -> None:
        """Moves the timer forward if this shard needs it earlier; a timer that fires too early does no harm."""
        if hosted.status is not Status.ACTIVE:
            return
        deadline_ms = hosted.shard.next_deadline_ms()
        deadline_ms = (
            hosted.timeout_ms if deadline_ms is None else min(max(deadline_ms, hosted.not_before_ms), hosted.timeout_ms)
        )
        if deadline_ms >= NEVER_MS:
            return
        if self._timer is not None and self._alarm_ms <= deadline_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._alarm_ms = deadline_ms
        self._timer = self._clock.call_at(deadline_ms, self._ring)

    def _ring(self) -> None:
        """Expires the shards; an error in one doesn't stop the others."""
        self._timer = None
        now_ms = self._clock.now_ms()
        for key, hosted in list(self._hosted.items()):
            if hosted.status is Status.ACTIVE:
                self._expire(key, hosted, now_ms)

    def _expire(self, key: Hashable, hosted: HostedShard[R], now_ms: int) -> None:
        if hosted.timeout_ms <= now_ms:
            hosted.time_out(now_ms)
        deadline_ms = hosted.shard.next_deadline_ms()
        if deadline_ms is None or max(deadline_ms, hosted.not_before_ms) > now_ms:
            self._arm(hosted)
            return
        try:
            outcome = hosted.shard.expire(now_ms)
        except Exception as fault:
            self._expire_failed(hosted, fault, now_ms)
            hosted.release_forgotten()
            if not isinstance(fault, KafkaError):
                self._on_fault(key, fault)
            return
        try:
            self._write(key, hosted, outcome, now_ms)
        except KafkaError as error:  # the waiting requests have the error
            self._expire_failed(hosted, error, now_ms)

    def _expire_failed(self, hosted: HostedShard[R], error: Exception, now_ms: int) -> None:
        hosted.not_before_ms = hosted.shard.expire_failed(error, now_ms)
        self._arm(hosted)
