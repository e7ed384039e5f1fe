"""A Produce with acks=all that waits until its records are committed: parked, without a task, like a fetch.

Source: kafka.server.DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.exchange.context import Context
from broker.exchange.pending import ParkedCall
from broker.exchange.timeouts import Timeouts
from broker.replica.partition import Partition
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse


class Uncommitted(NamedTuple):
    """An append that is not committed yet, with the response that waits for that."""

    answer: PartitionProduceResponse
    partition: Partition
    end_offset: int
    """The offset behind its last record."""
    tenure: int
    """The partition's tenure at the time of the append."""


class ParkedProduce(ParkedCall):
    """Answers once every partition is committed, or has failed, or the time is up."""

    __slots__ = ("_finish", "_uncommitted", "response")

    def __init__(
        self,
        context: Context,
        response: ProduceResponse,
        uncommitted: Sequence[Uncommitted],
        finish: Callable[[ProduceResponse], ProduceResponse],
    ) -> None:
        """`finish` is called last, with the response."""
        super().__init__(context, 0, committed_only=False)
        self.response = response
        self._uncommitted = uncommitted
        self._finish = finish

    def wait(self, timeouts: Timeouts, timeout_ms: int) -> None:
        """Begins to wait for commits, for so long at most."""
        self._watch_all()
        timeouts.add(self, max(timeout_ms, 0))

    def try_respond(self, *, is_last: bool) -> ProduceResponse | None:
        still_open = [uncommitted for uncommitted in self._uncommitted if not is_over(uncommitted, is_last)]
        if still_open:
            self._uncommitted = still_open
            self._watch_all()
            return None
        return self._finish(self.response)

    def _watch_all(self) -> None:
        self.watch([uncommitted.partition for uncommitted in self._uncommitted])


def is_over(append: Uncommitted, is_last: bool) -> bool:
    """Returns True once the append is committed or has failed, with its error in the response."""
    code = append.partition.commit_error(append.end_offset, append.tenure)
    if code is None and is_last:
        code = ErrorCode.REQUEST_TIMED_OUT
    if code:
        append.answer.error_code = code
    return code is not None
