"""What the short cuts of Fetch share: bounds, writing a partition's answer, and waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_be, write_i16_be, write_i32_be, write_i64_be

from broker.exchange.pending import ParkedShortCut
from broker.replica.replica import READ_COMMITTED
from protocol.connection import JOIN_LIMIT_BYTES
from protocol.types import Buffer

if TYPE_CHECKING:
    from broker.exchange.context import Context
    from broker.exchange.pending import Answer
    from broker.replica.partition import Partition
    from broker.requests.broker import Broker

SIZE_BYTES: Final = 4
MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""
NULL: Final = 0
NONE_ABORTED: Final = 1
"""Aborted transactions: nothing for who reads all, an empty list for who reads what is committed."""
NO_REPLICA: Final = -1


class Bounds:
    """How much a request wants, and how long it waits for it: its first fields, up to the session."""

    __slots__ = ("committed_only", "max_bytes", "max_wait_ms", "min_bytes")

    def __init__(self, broker: Broker, request: bytes, at: int) -> None:
        max_bytes: int = read_i32_be(request, at + 8)
        self.max_wait_ms: int = read_i32_be(request, at)
        self.min_bytes: int = read_i32_be(request, at + 4)
        self.max_bytes = max(min(max_bytes, broker.config.fetch_max_bytes), 0)
        self.committed_only = request[at + 12] == READ_COMMITTED

    @property
    def may_wait(self) -> bool:
        return self.min_bytes > 0 and self.max_wait_ms > 0


class ParkedFetch(ParkedShortCut):
    """One that waits for bytes. `look` says what there is for it; partitions come and go meanwhile."""

    __slots__ = ("bounds", "broker", "request")

    def __init__(self, broker: Broker, context: Context, request: bytes, bounds: Bounds, size_bytes: int) -> None:
        super().__init__(context, bounds.min_bytes - size_bytes, committed_only=bounds.committed_only)
        self.broker = broker
        self.request = request
        self.bounds = bounds

    def wait(self, partitions: list[Partition]) -> None:
        """Until these have enough, or the time is up."""
        self.watch(partitions)
        self.broker.timeouts.add(self, self.bounds.max_wait_ms)

    def leave(self) -> Answer:
        """To the general way."""
        return None if self.otherwise is None else self.otherwise(memoryview(self.request))


def begun(correlation_id: int, session_id: int) -> BytesWriter:
    """A response up to its topics, but for the size, which comes last."""
    head = BytesWriter()
    write_i32_be(head, 0)
    write_i32_be(head, correlation_id)
    head.append(0)  # no tags
    write_i32_be(head, 0)  # throttle time
    write_i16_be(head, 0)  # no error
    write_i32_be(head, session_id)
    return head


def write_partition(out: BytesWriter, index: int, partition: Partition, committed_only: bool, size_bytes: int) -> None:
    """A partition's answer up to its records."""
    high_watermark = partition.high_watermark
    write_i32_be(out, index)
    write_i16_be(out, 0)  # no error
    write_i64_be(out, high_watermark)
    write_i64_be(out, high_watermark)  # last stable offset: no transaction is open
    write_i64_be(out, partition.log_start_offset)
    out.append(NONE_ABORTED if committed_only else NULL)
    write_i32_be(out, NO_REPLICA)
    write_uvarint(out, size_bytes + 1)


def finished(head: BytesWriter, rest: list[Buffer]) -> list[Buffer]:
    """The parts of a response with its size in front; small ones come as one."""
    size = len(head) - SIZE_BYTES
    for part in rest:
        size += len(part)
    for n in range(SIZE_BYTES):
        head[n] = size >> 24 - 8 * n & 0xFF
    parts: list[Buffer] = [head.getvalue(), *rest]
    return [b"".join(parts)] if size <= JOIN_LIMIT_BYTES else parts


def write_uvarint(out: BytesWriter, value: int) -> None:
    while value > MOST:
        out.append(value & MOST | 0x80)
        value >>= 7
    out.append(value)
