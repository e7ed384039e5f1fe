"""Runs machines: decide → append → apply → effects with no await between, then wait for the commit and release replies.

A machine is a state machine over one partition of an internal topic, or over other storage. Its decisions read state
and return a `Result`; only `apply` changes durable state, only effects change soft state, and loading is `apply` from
the log's start. A machine has no clock and no lock. An error comes before `apply`, or the machine is loaded again,
unless it can undo a record (`load`), or its whole state (`Restorable`). A decision or an expiry that fails because of a
bug fails only its own request or timer: the bug is reported, and every other deadline is kept. Source: Kafka's
CoordinatorRuntime (coordinator-common), KIP-848.

    engine = Engine(clock, …)
    await engine.load(partition, machine, storage, serde)            # COORDINATOR_LOAD_IN_PROGRESS until it is done
    answer = await engine.submit(partition, lambda ticket, now_ms: machine.heartbeat(request, ticket, now_ms))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, Generic, NoReturn, TypeVar

from coordinator.engine.clock import Alarm, EngineClock
from coordinator.engine.errors import HalfWritten, Undecided
from coordinator.engine.loaded import (
    FAILED,
    NEVER_MS,
    REJECTIONS,
    Append,
    AsAnswer,
    LoadedMachine,
    Outcome,
    PendingReplies,
    Status,
    WhenCommitted,
    append_to,
)
from coordinator.engine.machine import Machine, Restorable, Serde, Storage
from coordinator.engine.result import Decision, Result, Ticket
from protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")
A = TypeVar("A")
E = TypeVar("E")
"""Encoded records: whole batches, or records that a storage gathers into batches."""
P = TypeVar("P")
"""A piece of a storage's content."""


STALE_ENTRIES: Final = 64
"""Stale entries that the heap may have beyond one for each machine; then it is rebuilt."""

EXPIRIES_AT_ONCE: Final = 20
"""Deadlines and their records that the engine handles before other work of the event loop: a group's session takes some
microseconds, the locks of a share partition up to a few milliseconds, and thousands may expire together."""

OnFault = Callable[[Hashable, Exception], None]
"""Called with the machine's key and an exception that no client can cause."""


def raise_fault(key: Hashable, error: Exception) -> None:
    """Raises a bug at its place, for engines without another `on_fault`."""
    raise error


class Engine(Generic[R]):
    """Machines by key, such as the partition of their topic, and one timer for all of them."""

    def __init__(
        self,
        clock: EngineClock,
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
        self._machines: dict[Hashable, LoadedMachine[R]] = {}
        self._timer: Alarm | None = None
        self._alarm_ms = 0
        self._due: list[tuple[int, int, Hashable, LoadedMachine[R]]] = []
        """Heap of the machines with a deadline, ordered by deadline and a serial number. An entry is stale if the
        machine has another deadline by now."""
        self._serial = 0

    async def load(
        self,
        key: Hashable,
        machine: Machine[R],
        storage: Storage[E, P],
        serde: Serde[R, E, P],
        activate: Callable[[int], None] | None = None,
        outcome: Outcome[R] | None = None,
    ) -> None:
        """Builds a new machine's state from its storage; returns when it is active, or was unloaded meanwhile.

        `activate` is called with the time when all records are applied, so that it can set timers. `outcome` is for a
        machine that can undo a result: it is called with the result's records once they are committed, or with their
        error. Then a failed write fails no other requests, answers wait only for their own result's records, and an
        unloaded machine's results still get their outcome.
        """
        append = partial(append_to, storage, serde)
        loaded = LoadedMachine(machine, append, storage.when_committed, self._as_answer, outcome)
        self._machines[key] = loaded
        try:
            async for piece in storage.read():
                if self._machines.get(key) is not loaded:
                    return
                for record in serde.decode(piece):
                    machine.apply(record)
        except KafkaError as error:
            if self._machines.get(key) is loaded:
                self._fail(key, loaded, error)
            raise
        if self._machines.get(key) is loaded:
            if activate is not None:
                activate(self._clock.now_ms())
            loaded.status = Status.ACTIVE
            self._arm(key, loaded)
            loaded.appended_to = storage.end_offset  # until this offset is committed, no answer shows the loaded state
            if outcome is None:
                self._await_commit(key, loaded, Result(), self._clock.now_ms())

    def host(
        self,
        key: Hashable,
        machine: Restorable[R],
        append: Append[R],
        when_committed: WhenCommitted,
        end_offset: int,
    ) -> None:
        """Runs a machine that already has the state of its log, up to `end_offset`. Its decisions may build on records
        that are not committed yet. If a write fails, only the state is restored: requests that wait for earlier records
        continue to wait."""
        loaded = self._machines[key] = LoadedMachine(machine, append, when_committed, self._as_answer)
        loaded.restore = machine.restore
        loaded.status = Status.ACTIVE
        loaded.appended_to = end_offset
        self._arm(key, loaded)

    def unload(self, key: Hashable) -> None:
        """Unloads the machine, because another broker leads its partition: waiting requests get NOT_COORDINATOR."""
        loaded = self._machines.pop(key, None)
        if loaded is None:
            return
        loaded.status = Status.FAILED
        if loaded.outcome is None:
            loaded.fail(KafkaError(ErrorCode.NOT_COORDINATOR))

    def status(self, key: Hashable) -> Status | None:
        """Returns the machine's status; None if the engine doesn't have the machine."""
        loaded = self._machines.get(key)
        return None if loaded is None else loaded.status

    def submit(self, key: Hashable, decision: Decision[A, R], ticket: Ticket[A] | None = None) -> asyncio.Future[A]:
        """Decides and writes. Returns the answer's future, which is done if there is nothing to wait for. `ticket` is
        the ticket of a decision that a thread has made; None if it is made here.

        Raises the KafkaError of the decision or of the append, unless the future raises it. Raises
        COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR if no active machine has the key.
        """
        loaded = self._serving(key)
        if ticket is None:
            ticket = Ticket()
        now_ms = self._clock.now_ms()
        try:
            result = decision(ticket, now_ms)
        except (KafkaError, Undecided):
            raise
        except Exception as error:
            self._on_fault(key, error)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(FAILED)) from error
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        loaded.waiting[ticket] = future  # type: ignore[assignment]  # the reply to a ticket has the ticket's type
        try:
            self._write(key, loaded, result, now_ms)
        except KafkaError:
            loaded.waiting.pop(ticket, None)
            if future.done():
                future.exception()  # the same error is raised here
            raise
        if not future.done() and all(answered.ticket is not ticket for answered in result.replies):
            # A later decision answers it: a request that is cancelled by then isn't waited for.
            future.add_done_callback(lambda _: loaded.waiting.pop(ticket, None))
        return future

    def _serving(self, key: Hashable) -> LoadedMachine[R]:
        loaded = self._machines.get(key)
        if loaded is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if loaded.status is not Status.ACTIVE:
            raise KafkaError(REJECTIONS[loaded.status])
        return loaded

    def _write(self, key: Hashable, loaded: LoadedMachine[R], result: Result[R], now_ms: int) -> None:
        """Appends and applies, carries out the effects, and releases or holds the replies. A failed append changes
        nothing, and its error is raised."""
        if result.records:
            try:
                if loaded.restore is not None:
                    loaded.apply(result.records)
                loaded.appended_to = loaded.append(result.records, now_ms)
            except Exception as error:
                self._not_written(key, loaded, error)
        try:
            if loaded.restore is None:
                loaded.apply(result.records)
            for effect in result.effects:
                effect()
        except Exception as error:
            self._not_applied(key, loaded, result, error)
        if loaded.appended_to <= loaded.committed_to or (loaded.outcome is not None and not result.records):
            loaded.release(result.replies)
        elif result.records or result.replies:
            self._await_commit(key, loaded, result, now_ms)
        self._arm(key, loaded)

    def _not_written(self, key: Hashable, loaded: LoadedMachine[R], error: Exception) -> NoReturn:
        rejection = error if isinstance(error, KafkaError) else FAILED
        if loaded.restore is not None:
            loaded.restore()
        elif isinstance(error, HalfWritten):
            self._give_up(key, loaded, error)
        if rejection is FAILED:
            self._on_fault(key, error)
        raise KafkaError(rejection.code, rejection.message) from error

    def _not_applied(self, key: Hashable, loaded: LoadedMachine[R], result: Result[R], error: Exception) -> NoReturn:
        """Unloads a machine whose state may be half changed. The decision is in the log, from which the state is
        loaded again."""
        loaded.release([(ticket, FAILED) for ticket, _ in result.replies])
        if loaded.restore is None:
            self._give_up(key, loaded, error)
        else:  # only an effect has failed: the state is the log's
            self._on_fault(key, error)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(FAILED)) from error

    def _give_up(self, key: Hashable, loaded: LoadedMachine[R], error: Exception) -> None:
        """Unloads the machine; waiting requests are told to try again, and reach the machine that is loaded in its
        place."""
        self._fail(key, loaded, KafkaError(ErrorCode.NOT_COORDINATOR, repr(error)))
        self._on_fault(key, error)

    def _await_commit(self, key: Hashable, loaded: LoadedMachine[R], result: Result[R], now_ms: int) -> None:
        timeout_ms = NEVER_MS if self._write_timeout_ms is None else self._write_timeout_ms(result.records)
        records = () if loaded.outcome is None else result.records
        written = PendingReplies(loaded.appended_to, records, result.replies, now_ms + timeout_ms)
        loaded.written.append(written)
        loaded.timeout_ms = min(loaded.timeout_ms, written.deadline_ms)
        loaded.when_committed(written.offset, partial(self._committed, key, loaded, written))

    def _committed(
        self, key: Hashable, loaded: LoadedMachine[R], written: PendingReplies[R], error: KafkaError | None
    ) -> None:
        if loaded.outcome is not None:
            self._conclude(key, loaded, written, error)
        elif error is None:
            loaded.committed(written)
        elif loaded.status is Status.ACTIVE:
            self._fail(key, loaded, error)

    def _conclude(
        self, key: Hashable, loaded: LoadedMachine[R], written: PendingReplies[R], error: KafkaError | None
    ) -> None:
        """Tells a machine the outcome of a result, which concerns no other result, and then releases the replies."""
        assert loaded.outcome is not None
        try:
            loaded.outcome(written.records, error)
        except Exception as fault:
            self._give_up(key, loaded, fault)
        loaded.concluded(written, error)
        self._arm(key, loaded)

    def _fail(self, key: Hashable, loaded: LoadedMachine[R], error: KafkaError) -> None:
        loaded.fail(error)
        self._on_failure(key, error)

    def arm(self, key: Hashable) -> None:
        """Sets the timer for a machine whose deadlines have changed without a decision."""
        loaded = self._machines.get(key)
        if loaded is not None:
            self._arm(key, loaded)

    def _arm(self, key: Hashable, loaded: LoadedMachine[R]) -> None:
        """Moves the timer forward if this machine needs it earlier; a timer that fires too early does no harm."""
        if loaded.status is not Status.ACTIVE:
            return
        deadline_ms = loaded.machine.next_deadline_ms()
        deadline_ms = (
            loaded.timeout_ms if deadline_ms is None else min(max(deadline_ms, loaded.not_before_ms), loaded.timeout_ms)
        )
        if deadline_ms < loaded.armed_ms:
            loaded.armed_ms = deadline_ms
            self._serial += 1
            heappush(self._due, (deadline_ms, self._serial, key, loaded))
            if len(self._due) > 2 * len(self._machines) + STALE_ENTRIES:
                self._drop_stale()
            self._set_timer()

    def _drop_stale(self) -> None:
        """Rebuilds the heap without stale entries, which would keep an unloaded machine until its last deadline."""
        self._due = [
            (loaded.armed_ms, serial, key, loaded)
            for serial, (key, loaded) in enumerate(self._machines.items())
            if loaded.armed_ms != NEVER_MS
        ]
        heapify(self._due)

    def _set_timer(self) -> None:
        """Sets the timer to the first deadline."""
        if not self._due or (self._timer is not None and self._alarm_ms <= self._due[0][0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._alarm_ms = self._due[0][0]
        self._timer = self._clock.call_at(self._alarm_ms, self._ring)

    def _ring(self) -> None:
        """Expires the machines that are due; an error in one doesn't stop the others. If there is too much to expire,
        the rest comes in the event loop's next turn."""
        self._timer = None
        now_ms, left = self._clock.now_ms(), EXPIRIES_AT_ONCE
        while left > 0 and self._due and self._due[0][0] <= now_ms:
            armed_ms, _, key, loaded = heappop(self._due)
            if loaded.status is not Status.ACTIVE or armed_ms != loaded.armed_ms:
                continue
            loaded.armed_ms = NEVER_MS
            if loaded.timeout_ms <= now_ms:
                loaded.time_out(now_ms)
            left = self._expire_due(key, loaded, now_ms, left)
        self._set_timer()

    def expire(self, key: Hashable) -> None:
        """Expires a machine's deadlines that are due, even if an expiry has just failed."""
        loaded = self._machines.get(key)
        if loaded is not None:
            loaded.not_before_ms = 0
            self._expire_due(key, loaded, self._clock.now_ms(), EXPIRIES_AT_ONCE)

    def _expire_due(self, key: Hashable, loaded: LoadedMachine[R], now_ms: int, left: int) -> int:
        """Expires a machine's deadlines that are due, and returns how many more may be handled at once."""
        while left > 0 and loaded.is_due(now_ms) and (work := self._expire(key, loaded, now_ms)):
            left -= work
        self._arm(key, loaded)
        return left

    def _expire(self, key: Hashable, loaded: LoadedMachine[R], now_ms: int) -> int:
        """Decides on one deadline. Returns the number of deadlines and records that were handled, or 0 after a
        failure."""
        try:
            result = loaded.machine.expire(now_ms)
        except Exception as fault:
            loaded.not_before_ms = loaded.machine.expire_failed(fault, now_ms)
            if not isinstance(fault, KafkaError):
                self._on_fault(key, fault)
            return 0
        try:
            self._write(key, loaded, result, now_ms)
        except KafkaError as error:
            loaded.not_before_ms = loaded.machine.expire_failed(error, now_ms)
            return 0
        return 1 + len(result.records)
