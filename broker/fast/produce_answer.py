"""The answer of a Produce, written integer by integer as its partitions are appended to.

With acks=all it waits, as `produce_commit.ParkedProduce` does, until other replicas have what was appended: parked,
with its bytes at hand, which nearly always go out as they were written. Source of the layout:
protocol/messages/produce.py, whose codec is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

from broker.exchange.pending import Answer, ParkedCall
from broker.replica.partition import Partition
from broker.requests.produce_rules import failed_partition
from protocol.codec import decode, part_encoder
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from protocol.types import Buffer
from storage.appending.appended import Appended

if TYPE_CHECKING:
    from broker.exchange.context import Context
    from broker.requests.broker import Broker

SIZE_BYTES: Final = 4
HEAD_BYTES: Final = 9
"""Size, correlation id, no tags."""
END: Final = bytes(5)
"""Throttle time, no tags."""


class UncommittedAppend:
    """An append that other replicas do not have yet, all of them."""

    __slots__ = ("end_offset", "number", "partition", "tenure")

    def __init__(self, partition: Partition, end_offset: int, number: int) -> None:
        self.partition = partition
        self.end_offset = end_offset
        """The offset behind its last record."""
        self.tenure = partition.tenure
        self.number = number
        """How many partitions the answer has before this one."""


class ProduceAnswer:
    """The answer to one request, up to the partition that was appended to last."""

    __slots__ = ("for_all", "number", "uncommitted", "version", "writer")

    def __init__(self, context: Context, for_all: bool, topic_count: int) -> None:
        self.version = context.version
        self.for_all = for_all
        """True with acks=all."""
        self.uncommitted: list[UncommittedAppend] = []
        """The appends whose commits the answer waits for, with acks=all."""
        self.number = 0
        """How many partitions it has."""
        self.writer = writer = BytesWriter()
        write_i32_be(writer, 0)  # the size, once it is known
        write_i32_be(writer, context.correlation_id)
        writer.append(0)  # no tags
        writer.append(topic_count + 1)

    def begin_topic(self, key: bytes, partition_count: int) -> None:
        """Writes the name or id of a topic, as its request has it."""
        self.writer.write(key)
        self.writer.append(partition_count + 1)

    def end_topic(self) -> None:
        """Ends a topic, which has no tags."""
        self.writer.append(0)

    def append(self, partition: Partition, index: int, appended: Appended) -> None:
        """Writes that records were appended, which counts once they are committed."""
        writer = self.writer
        write_i32_be(writer, index)
        write_i16_be(writer, 0)  # no error
        write_i64_be(writer, appended.base_offset)
        write_i64_be(writer, appended.log_append_time_ms)
        write_i64_be(writer, appended.log_start_offset)
        writer.append(1)  # no record errors
        write_i16_be(writer, 0)  # no message, no tags
        if self.for_all and not partition.is_alone:
            self.uncommitted.append(UncommittedAppend(partition, appended.last_offset + 1, self.number))
        self.number += 1

    def refuse(self, partition: Partition, index: int, error: KafkaError) -> None:
        """Writes a partition's error, encoded as by the handler, and counts it."""
        partition.traffic.append_failed(error.code)
        parts: list[Buffer] = []
        part_encoder(ProduceResponse, PartitionProduceResponse, self.version)(
            failed_partition(index, error, partition), parts.append
        )
        self.writer.write(b"".join(parts))
        self.number += 1

    def complete(self) -> list[Buffer]:
        """Ends the answer, and returns it with its size filled in."""
        writer = self.writer
        writer.write(END)
        size = len(writer) - SIZE_BYTES
        for n in range(SIZE_BYTES):
            writer[n] = size >> 24 - 8 * n & 0xFF
        return [writer.getvalue()]


class ParkedAnswer(ParkedCall):
    """An answer that waits for commits. It holds nothing of its request but the times and names of its context, so that
    the connection's next Produce need not wait for it."""

    __slots__ = ("_answer", "_broker", "_failed", "_uncommitted")

    def __init__(self, broker: Broker, context: Context, answer: ProduceAnswer) -> None:
        super().__init__(context, 0, committed_only=False)
        self.admits_next = True
        self._broker = broker
        self._answer = answer
        self._uncommitted = answer.uncommitted
        self._failed: dict[int, ErrorCode] = {}
        """The errors of appends that will not be committed, by their number."""

    def begin(self, done: Callable[[Answer | Exception], None]) -> None:
        super().begin(done)
        self._watch_all()

    def try_respond(self, *, is_last: bool) -> object | None:
        still_open: list[UncommittedAppend] = []
        for append in self._uncommitted:
            code = append.partition.commit_error(append.end_offset, append.tenure)
            if code is None:
                if not is_last:
                    still_open.append(append)
                    continue
                code = ErrorCode.REQUEST_TIMED_OUT
            if code is not ErrorCode.NONE:
                self._failed[append.number] = code
        if still_open:
            if len(still_open) < len(self._uncommitted):
                self._uncommitted = still_open
                if self._watched:
                    self._watch_all()
            return None
        self._uncommitted = still_open
        answer = self._answer.complete()
        return with_errors(self._broker, self.context, answer, self._failed) if self._failed else answer

    def _watch_all(self) -> None:
        self.watch([append.partition for append in self._uncommitted])


def with_errors(broker: Broker, context: Context, answer: list[Buffer], failed: dict[int, ErrorCode]) -> object:
    """Returns the answer as a message, with these errors, and with who leads now."""
    from broker.handlers.produce import with_leaders  # takes time to import, and few answers need it

    response, _ = decode(ProduceResponse, context.version, answer[0], HEAD_BYTES)
    number = 0
    for topic in response.responses:
        for partition in topic.partition_responses:
            code = failed.get(number)
            if code is not None:
                partition.error_code = code
            number += 1
    return with_leaders(broker, context, response)


def answered(broker: Broker, context: Context, answer: ProduceAnswer, timeout_ms: int) -> object:
    """Returns the whole answer, or parks it until other replicas have what was appended."""
    if not answer.uncommitted:
        return answer.complete()
    parked = ParkedAnswer(broker, context, answer)
    response = parked.try_respond(is_last=False)
    if response is not None:
        parked.cancel()
        return response
    broker.timeouts.add(parked, max(timeout_ms, 0))
    return parked
