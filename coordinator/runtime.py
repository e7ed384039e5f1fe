"""Runs shards: decide → append → apply with no await between, then wait for the commit and release the replies.

A shard is a state machine over one partition of an internal topic (or over the cluster metadata log). Its decisions
read state and return an `Outcome`; `apply` alone changes durable state, and loading is nothing but `apply` from the
log's start. A shard has no clock, no lock and no rollback: whatever fails, fails before `apply`, or costs the shard its
place and it is loaded again. Source: Kafka's CoordinatorRuntime (coordinator-common), KIP-848.

    runtime = Runtime(clock)
    await runtime.load(partition, shard, storage, form)              # COORDINATOR_LOAD_IN_PROGRESS until it is done
    answer = await runtime.submit(partition, lambda ticket, now_ms: shard.heartbeat(request, ticket, now_ms))
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from protocol.errors import ErrorCode, KafkaError
from protocol.types import Buffer

R = TypeVar("R")
A = TypeVar("A")
E = TypeVar("E")
"""Records as a storage takes them: whole batches, or what a storage that gathers makes batches of."""
E_in = TypeVar("E_in", contravariant=True)
E_out = TypeVar("E_out", covariant=True)

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much

RETRY_MS: Final = 1_000
"""How long an expiry waits whose records could not be appended: a full disk, or too few replicas, takes its time."""


class Ticket(Generic[A]):
    """One waiting request's claim to one answer of type A: whoever decides may give it now, later, or fail it."""

    __slots__ = ()


class Reply(NamedTuple):
    """An answer for the holder of a ticket; a KafkaError is raised to it."""

    ticket: Hashable
    answer: object | None


def reply(ticket: Ticket[A], answer: A | KafkaError) -> Reply:
    """A Reply whose answer is of the ticket's type."""
    return _new(Reply, (ticket, answer))


class Outcome(Generic[R]):
    """What was decided: facts to append, in order and in one go, and answers that are released once they are committed.

    Without records the answers wait for what the shard appended before, so that nobody is told what could be lost.
    """

    __slots__ = ("records", "replies")

    def __init__(self, records: Sequence[R] = (), replies: Sequence[Reply] = ()) -> None:
        self.records = records
        self.replies = replies


Decision = Callable[[Ticket[A], int], Outcome[R]]
"""A shard's method with its request bound: (ticket, now_ms) → Outcome. It may raise KafkaError instead, and changes no
durable state. It may also keep the ticket and answer it in a later outcome: a JoinGroup that waits for the others."""


class Shard(Protocol[R]):
    """What the runtime itself asks of a shard; its decisions are methods of the shape `Decision`."""

    def apply(self, record: R) -> None:
        """The only writer of durable state: for each new record, and for each one that is loaded."""
        ...

    def expire(self, now_ms: int) -> Outcome[R]:
        """A deadline has passed: more records, more replies."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When `expire` is due; asked after every outcome, so it must be cheap."""
        ...


class Form(Protocol[R, E_out]):
    """How a shard's records are written."""

    def encode(self, records: Sequence[R], now_ms: int) -> E_out:
        """All of the records, for the storage. Raises KafkaError for what cannot be written."""
        ...

    def decode(self, batches: Buffer) -> Iterable[R]:
        """The records of whole batches, in order."""
        ...


class Storage(Protocol[E_in]):
    """The partition under a shard."""

    def append(self, encoded: E_in) -> int:
        """Append all or nothing, without waiting for a disk; the offset after the last record. Raises KafkaError.

        It may gather what it is given and write it a little later; if that fails, nothing of it will be committed.
        """
        ...

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Call `then` once everything before `offset` is committed: at once if it is, or with the error if it won't be.

        Calls come in the order of the offsets.
        """
        ...

    def read(self) -> AsyncIterator[Buffer]:
        """Everything, from the start of the log to its end, as pieces of whole batches; may await between them."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        ...


class Timer(Protocol):
    """What `call_at` returns."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, and one alarm."""

    def now_ms(self) -> int: ...

    def call_at(self, when_ms: int, then: Callable[[], None]) -> Timer: ...


class Status(Enum):
    """A hosted shard's life: LOADING → ACTIVE → FAILED; an unloaded one is hosted no more."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


REFUSALS = {
    Status.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    Status.FAILED: ErrorCode.NOT_COORDINATOR,
}


NEVER_MS: Final = 1 << 62

AsAnswer = Callable[[KafkaError], KafkaError]


class _Written:
    """Answers that wait until everything before the offset is committed, and how long they wait at most."""

    __slots__ = ("deadline_ms", "offset", "replies")

    def __init__(self, offset: int, replies: Sequence[Reply], deadline_ms: int) -> None:
        self.offset = offset
        self.replies = replies
        self.deadline_ms = deadline_ms


class _Hosted(Generic[R]):
    """A shard, its partition, and the requests that wait for it."""

    def __init__(self, shard: Shard[R], storage: Storage[E], form: Form[R, E], as_answer: AsAnswer) -> None:
        self.shard = shard
        self.as_answer = as_answer
        self.append: Callable[[Sequence[R], int], int] = lambda records, now_ms: storage.append(
            form.encode(records, now_ms)
        )
        self.when_committed = storage.when_committed
        self.decode = form.decode
        self.status = Status.LOADING
        self.appended_to = self.committed_to = 0
        self.waiting: dict[object, asyncio.Future[object]] = {}
        self.written: deque[_Written] = deque()
        """What is not known to be committed, in the order of the offsets."""
        self.timeout_ms = NEVER_MS
        """When the first of them may be due; it is looked at only then."""

    def release(self, replies: Iterable[Reply]) -> None:
        for ticket, answer in replies:
            future = self.waiting.pop(ticket, None)
            if future is None or future.done():  # its connection is gone
                continue
            if isinstance(answer, KafkaError):
                future.set_exception(self.as_answer(answer))
            else:
                future.set_result(answer)

    def settle(self, written: _Written) -> None:
        """It is committed, and with it what was written before."""
        self.committed_to = written.offset
        self.release(written.replies)
        while self.written and self.written[0].offset <= written.offset:
            self.written.popleft()

    def time_out(self, now_ms: int) -> None:
        """Who has waited too long is told so. What was decided stays so, and may still be committed later on."""
        late = [written for written in self.written if written.deadline_ms <= now_ms]
        for written in late:
            error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not committed up to {written.offset} in time")
            self.release([Reply(ticket, error) for ticket, _ in written.replies])
        self.timeout_ms = min(
            (each.deadline_ms for each in self.written if each.deadline_ms > now_ms), default=NEVER_MS
        )

    def fail(self, error: KafkaError) -> None:
        """Every waiting request gets the error; what was applied but never committed is not to be seen again."""
        self.status = Status.FAILED
        self.release([Reply(ticket, error) for ticket in self.waiting])


class Runtime(Generic[R]):
    """Shards by key (the partition of their topic), and one timer for all of them."""

    def __init__(
        self,
        clock: Clock,
        on_failure: Callable[[Hashable, KafkaError], None],
        write_timeout_ms: Callable[[Sequence[R]], int] | None = None,
        as_answer: AsAnswer = lambda error: error,
    ) -> None:
        """`write_timeout_ms` tells how long answers wait at most for the commit of records, or of what was written
        before where there are none; they fail with REQUEST_TIMED_OUT then. None bounds nothing. `as_answer` makes of an
        error what those who wait are told."""
        self._clock = clock
        self._write_timeout_ms = write_timeout_ms
        self._as_answer = as_answer
        self._on_failure = on_failure
        self._hosted: dict[Hashable, _Hosted[R]] = {}
        self._timer: Timer | None = None
        self._alarm_ms = 0

    async def load(
        self,
        key: Hashable,
        shard: Shard[R],
        storage: Storage[E],
        form: Form[R, E],
        loaded: Callable[[int], None] | None = None,
    ) -> None:
        """Host a new shard and build its state from its log; returns when it serves, or was unloaded meanwhile.

        `loaded` is told the time when all is there, to set deadlines by it.
        """
        hosted = self._hosted[key] = _Hosted(shard, storage, form, self._as_answer)
        try:
            async for piece in storage.read():
                if self._hosted.get(key) is not hosted:
                    return
                for record in hosted.decode(piece):
                    shard.apply(record)
        except KafkaError as error:
            self._fail(key, hosted, error)
            raise
        if self._hosted.get(key) is hosted:
            if loaded is not None:
                loaded(self._clock.now_ms())
            self._activate(hosted)
            hosted.appended_to = storage.end_offset  # until that is committed, nobody is told of what was loaded
            self._await_commit(key, hosted, Outcome(), self._clock.now_ms())

    def adopt(self, key: Hashable, shard: Shard[R], storage: Storage[E], form: Form[R, E]) -> None:
        """Host a shard that its owner has loaded."""
        self._hosted[key] = hosted = _Hosted(shard, storage, form, self._as_answer)
        self._activate(hosted)

    def unload(self, key: Hashable) -> None:
        """Give the shard up (another broker leads its partition): those who wait are told to ask elsewhere."""
        hosted = self._hosted.pop(key, None)
        if hosted is not None:
            hosted.fail(KafkaError(ErrorCode.NOT_COORDINATOR))

    def status(self, key: Hashable) -> Status | None:
        """The shard's status, None if it is not hosted."""
        hosted = self._hosted.get(key)
        return None if hosted is None else hosted.status

    async def submit(self, key: Hashable, decision: Decision[A, R]) -> A:
        """Decide, write, and wait for the answer's release. Raises KafkaError: the decision's own, the append's, or
        COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR where there is no serving shard."""
        return await self.begin(key, decision)

    def begin(self, key: Hashable, decision: Decision[A, R]) -> asyncio.Future[A]:
        """Decide and write; the answer's future, which is done already if nothing had to be waited for.

        Raises as `submit` does, as far as the answer is not the future's.
        """
        hosted = self._serving(key)
        ticket: Ticket[A] = Ticket()
        now_ms = self._clock.now_ms()
        outcome = decision(ticket, now_ms)
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        hosted.waiting[ticket] = future  # type: ignore[assignment]  # the reply to a ticket has the ticket's type
        try:
            self._write(key, hosted, outcome, now_ms)
        except KafkaError:
            hosted.waiting.pop(ticket, None)
            if future.done():
                future.exception()  # it is the one that is raised here
            raise
        if not future.done() and all(each.ticket is not ticket for each in outcome.replies):
            # Its answer comes with a later decision: whoever has gone by then is not waited for.
            future.add_done_callback(lambda _: hosted.waiting.pop(ticket, None))
        return future

    def _serving(self, key: Hashable) -> _Hosted[R]:
        hosted = self._hosted.get(key)
        if hosted is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if hosted.status is not Status.ACTIVE:
            raise KafkaError(REFUSALS[hosted.status])
        return hosted

    def _activate(self, hosted: _Hosted[R]) -> None:
        hosted.status = Status.ACTIVE
        self._arm(hosted)

    def _write(self, key: Hashable, hosted: _Hosted[R], outcome: Outcome[R], now_ms: int) -> None:
        """Append, apply, and see to the replies. An append that fails leaves the durable state as it was: its error is
        the answer to all whom the outcome would have answered, and is raised."""
        if outcome.records:
            try:
                hosted.appended_to = hosted.append(outcome.records, now_ms)
            except KafkaError as error:
                hosted.release([Reply(ticket, error) for ticket, _ in outcome.replies])
                self._arm(hosted, now_ms + RETRY_MS)
                raise
            for record in outcome.records:
                hosted.shard.apply(record)
        if hosted.appended_to <= hosted.committed_to:
            hosted.release(outcome.replies)
        elif outcome.records or outcome.replies:
            self._await_commit(key, hosted, outcome, now_ms)
        self._arm(hosted)

    def _await_commit(self, key: Hashable, hosted: _Hosted[R], outcome: Outcome[R], now_ms: int) -> None:
        timeout_ms = NEVER_MS if self._write_timeout_ms is None else self._write_timeout_ms(outcome.records)
        written = _Written(hosted.appended_to, outcome.replies, now_ms + timeout_ms)
        hosted.written.append(written)
        hosted.timeout_ms = min(hosted.timeout_ms, written.deadline_ms)
        hosted.when_committed(written.offset, partial(self._committed, key, hosted, written))

    def _committed(self, key: Hashable, hosted: _Hosted[R], written: _Written, error: KafkaError | None) -> None:
        if error is None:
            hosted.settle(written)
        elif hosted.status is Status.ACTIVE:
            self._fail(key, hosted, error)

    def _fail(self, key: Hashable, hosted: _Hosted[R], error: KafkaError) -> None:
        hosted.fail(error)
        self._on_failure(key, error)

    def _arm(self, hosted: _Hosted[R], not_before_ms: int = 0) -> None:
        """Bring the alarm forward if this shard needs it earlier; one that rings too early does no harm."""
        deadline_ms = hosted.shard.next_deadline_ms()
        deadline_ms = (
            hosted.timeout_ms if deadline_ms is None else min(max(deadline_ms, not_before_ms), hosted.timeout_ms)
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
        self._timer = None
        now_ms = self._clock.now_ms()
        for key, hosted in list(self._hosted.items()):
            if hosted.status is Status.ACTIVE:
                self._expire(key, hosted, now_ms)

    def _expire(self, key: Hashable, hosted: _Hosted[R], now_ms: int) -> None:
        if hosted.timeout_ms <= now_ms:
            hosted.time_out(now_ms)
        deadline_ms = hosted.shard.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            self._arm(hosted)
            return
        # A failed append has told whom it concerns, and the alarm is set to try again.
        with suppress(KafkaError):
            self._write(key, hosted, hosted.shard.expire(now_ms), now_ms)
