"""A shard at its place in the runtime: its partition, and the requests that wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Final, Generic, TypeVar

from coordinator.outcome import Reply
from coordinator.refusal import HalfWritten
from coordinator.shard import Serde, Shard, Storage
from protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")
E = TypeVar("E")


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


FAILED: Final = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator failed over a request")
"""For those whose answer is lost by a failure of ours, which is logged."""


class PendingReplies:
    """Answers that wait until everything before the offset is committed, and how long they wait at most."""

    __slots__ = ("deadline_ms", "offset", "replies")

    def __init__(self, offset: int, replies: Sequence[Reply], deadline_ms: int) -> None:
        self.offset = offset
        self.replies = replies
        self.deadline_ms = deadline_ms


class HostedShard(Generic[R]):
    """A shard, its partition, and the requests that wait for it."""

    def __init__(self, shard: Shard[R], storage: Storage[E], serde: Serde[R, E], as_answer: AsAnswer) -> None:
        self.shard = shard
        self.as_answer = as_answer
        self.append: Callable[[Sequence[R], int], int] = lambda records, now_ms: _append(
            storage, serde.encode(records, now_ms)
        )
        self.when_committed = storage.when_committed
        self.decode = serde.decode
        self.status = Status.LOADING
        self.appended_to = self.committed_to = 0
        self.waiting: dict[object, asyncio.Future[object]] = {}
        self.written: deque[PendingReplies] = deque()
        """Replies whose records may not be committed yet, in the order of the offsets."""
        self.timeout_ms = NEVER_MS
        """When the first of them may be due; it is looked at only then."""
        self.not_before_ms = 0
        """When `expire` may be called again, after it has failed."""

    def release(self, replies: Iterable[tuple[Hashable, object | None]]) -> None:
        for ticket, answer in replies:
            future = self.waiting.pop(ticket, None)
            if future is None or future.done():  # its connection is gone
                continue
            if isinstance(answer, KafkaError):
                future.set_exception(self.as_answer(answer))
                future.exception()  # whose coroutine ended with its connection has nobody to hear of it: no bug
            else:
                future.set_result(answer)

    def settle(self, written: PendingReplies) -> None:
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
            self.release([(ticket, error) for ticket, _ in written.replies])
        self.timeout_ms = min(
            (written.deadline_ms for written in self.written if written.deadline_ms > now_ms), default=NEVER_MS
        )

    def fail(self, error: KafkaError) -> None:
        """Every waiting request gets the error; what was applied but never committed is not to be seen again."""
        self.status = Status.FAILED
        self.release([(ticket, error) for ticket in self.waiting])

    def release_forgotten(self) -> None:
        """A decision has failed halfway: who waited for an answer that it had taken out of the state, and never gave,
        is told that it failed."""
        held = set(self.shard.tickets())
        held.update(ticket for written in self.written for ticket, _ in written.replies)
        self.release([(ticket, FAILED) for ticket in self.waiting if ticket not in held])


def _append(storage: Storage[E], encoded: E) -> int:
    try:
        return storage.append(encoded)
    except KafkaError:
        raise
    except Exception as error:
        raise HalfWritten(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)) from error
