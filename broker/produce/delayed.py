"""A Produce with acks=all that waits until its records are committed: parked, without a task, like a fetch.

Source: kafka.server.DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.produce.request import ParsedProduce, ProducedPartition
from broker.produce.writing import response
from broker.request.context import Context
from broker.request.pending import Answer, ParkedCall
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker


class DelayedProduce(ParkedCall):
    """Answers once every partition is committed or has failed, or its time is over. It holds no records, so that the
    connection's next Produce doesn't wait for it."""

    __slots__ = ("_broker", "_request", "_uncommitted")

    def __init__(
        self, broker: Broker, context: Context, request: ParsedProduce, uncommitted: list[ProducedPartition]
    ) -> None:
        super().__init__(context, 0, committed_only=False)
        self.admits_next = True
        self._broker = broker
        self._request = request
        self._uncommitted = uncommitted

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        super().begin(done)
        self._watch_all()
        # followers may have fetched the records before this: see Parked.begin
        if any(is_over(produced, is_last=False) for produced in self._uncommitted):
            self.wake()

    def try_respond(self, *, is_last: bool) -> object | None:
        still_open = [produced for produced in self._uncommitted if not is_over(produced, is_last=is_last)]
        if still_open:
            if len(still_open) < len(self._uncommitted):
                self._uncommitted = still_open
                if self._watched:
                    self._watch_all()
            return None
        return response(self._broker, self.context, self._request)

    def _watch_all(self) -> None:
        self.watch([produced.partition for produced in self._uncommitted if produced.partition is not None])


def is_over(produced: ProducedPartition, *, is_last: bool) -> bool:
    """Returns True once the append is committed or has failed, with its error in the answer."""
    partition = produced.partition
    assert partition is not None
    code = partition.commit_error(produced.end_offset, produced.tenure)
    if code is None and is_last:
        code = ErrorCode.REQUEST_TIMED_OUT
    if code:
        produced.error_code = code
    return code is not None
