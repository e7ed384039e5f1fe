"""A machine in the engine: its partition, and the requests that wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

from coordinator.engine.errors import HalfWritten
from coordinator.engine.machine import Machine, Serde, Storage
from coordinator.engine.result import Reply
from protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")
E = TypeVar("E")
P = TypeVar("P")

Outcome = Callable[[Sequence[R], KafkaError | None], None]
"""Called with a result's records once they are committed, or with their error."""


class Status(Enum):
    """The status of a machine in the engine: LOADING → ACTIVE → FAILED; an unloaded machine has none."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


REJECTIONS = {
    Status.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    Status.FAILED: ErrorCode.NOT_COORDINATOR,
}


NEVER_MS: Final = 1 << 62

AsAnswer = Callable[[KafkaError], KafkaError]

Append: TypeAlias = Callable[[Sequence[R], int], int]
"""(records, now_ms) → the offset after the records: appends all of them or none. Raises KafkaError."""

WhenCommitted: TypeAlias = Callable[[int, Callable[[KafkaError | None], None]], None]
"""The type of `Storage.when_committed`."""


FAILED: Final = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator failed over a request")
"""The answer of requests whose own answer is lost because of a bug, which is logged."""


class PendingReplies(Generic[R]):
    """Answers that wait until every record before the offset is committed, and their deadline."""

    __slots__ = ("deadline_ms", "offset", "records", "replies")

    def __init__(self, offset: int, records: Sequence[R], replies: Sequence[Reply], deadline_ms: int) -> None:
        self.offset = offset
        self.records = records
        """The result's records, if the machine is told their outcome."""
        self.replies = replies
        self.deadline_ms = deadline_ms


class LoadedMachine(Generic[R]):
    """A machine, its partition, and the requests that wait for it."""

    def __init__(
        self,
        machine: Machine[R],
        append: Append[R],
        when_committed: WhenCommitted,
        as_answer: AsAnswer,
        outcome: Outcome[R] | None = None,
    ) -> None:
        self.machine = machine
        self.append = append
        self.when_committed = when_committed
        self.as_answer = as_answer
        self.outcome = outcome
        self.restore: Callable[[], None] | None = None
        """The method of a `Restorable` machine; None for any other machine."""
        self.status = Status.LOADING
        self.appended_to = self.committed_to = 0
        self.waiting: dict[object, asyncio.Future[object]] = {}
        self.written: deque[PendingReplies[R]] = deque()
        """Replies whose records may not be committed yet, in order of offset."""
        self.timeout_ms = NEVER_MS
        """The time of the next check for late replies: the first deadline in `written`, or earlier."""
        self.not_before_ms = 0
        """The earliest time of the next `expire` after it has failed."""
        self.armed_ms = NEVER_MS
        """The time for which the engine's timer knows the machine."""

    def apply(self, records: Sequence[R]) -> None:
        for record in records:
            self.machine.apply(record)

    def release(self, replies: Iterable[tuple[Hashable, object | None]]) -> None:
        for ticket, answer in replies:
            future = self.waiting.pop(ticket, None)
            if future is None or future.done():  # its connection is gone
                continue
            if isinstance(answer, KafkaError):
                future.set_exception(self.as_answer(answer))
                future.exception()  # if its coroutine ended with its connection, nothing reads the error: no bug
            else:
                future.set_result(answer)

    def committed(self, written: PendingReplies[R]) -> None:
        """Releases the replies, whose records are committed together with all earlier ones."""
        self.committed_to = written.offset
        self.release(written.replies)
        while self.written and self.written[0].offset <= written.offset:
            self.written.popleft()

    def concluded(self, written: PendingReplies[R], error: KafkaError | None) -> None:
        """Releases the replies of a result that has its outcome."""
        self.written.remove(written)
        self.release([(ticket, answer if error is None else error) for ticket, answer in written.replies])

    def is_due(self, now_ms: int) -> bool:
        """True if the machine has a deadline that has passed, and may expire it."""
        if self.status is not Status.ACTIVE or self.not_before_ms > now_ms:
            return False
        deadline_ms = self.machine.next_deadline_ms()
        return deadline_ms is not None and deadline_ms <= now_ms

    def time_out(self, now_ms: int) -> None:
        """Fails requests that have waited too long. Their decisions stay, and may still be committed later."""
        late = [written for written in self.written if written.deadline_ms <= now_ms]
        for written in late:
            error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not committed up to {written.offset} in time")
            self.release([(ticket, error) for ticket, _ in written.replies])
        self.timeout_ms = min(
            (written.deadline_ms for written in self.written if written.deadline_ms > now_ms), default=NEVER_MS
        )

    def fail(self, error: KafkaError) -> None:
        """Fails every waiting request with the error; state that was applied but not committed must not be seen
        again."""
        self.status = Status.FAILED
        self.release([(ticket, error) for ticket in self.waiting])


def append_to(storage: Storage[E, P], serde: Serde[R, E, P], records: Sequence[R], now_ms: int) -> int:
    """Appends the records and returns the offset after them. Raises KafkaError, HalfWritten."""
    encoded = serde.encode(records, now_ms)
    try:
        return storage.append(encoded)
    except KafkaError:
        raise
    except Exception as error:
        raise HalfWritten(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)) from error
