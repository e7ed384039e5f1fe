"""Finding offsets by timestamp, exactly to the record, for ListOffsets (KIP-33, KIP-734).

Indexes and headers say in which batch. Its records, which may inflate to a hundred times the batch, are not looked at
here but by whoever asked, in a thread: the search begins anew with what they have shown, in the log as it is by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from protocol.records.batch import MAGIC_V2, NO_TIMESTAMP, BatchHeader
from protocol.records.message_set import read_messages
from protocol.records.whole import iter_whole_times
from storage.segment.segment import Segment
from storage.segment.segments import Segments


class TimestampAndOffset(NamedTuple):
    """A record found by time; the leader epoch that it was written in, None when the log does not know it."""

    timestamp: int
    offset: int
    leader_epoch: int | None


Looked: TypeAlias = "dict[tuple[int, bool], TimestampAndOffset | None]"
"""What the batches that were looked into have, None of those that have nothing: by base offset, and whether it is the
largest that was wanted."""


class Unseen(Exception):
    """A batch has to be looked into before the search goes on."""

    def __init__(self, key: tuple[int, bool], view: memoryview, header: BatchHeader, wanted: Wanted) -> None:
        super().__init__(key)
        self.key = key
        """Of what `look` gives, in Looked."""
        self._view = view
        self._header = header
        self._wanted = wanted

    def look(self) -> TimestampAndOffset | None:
        """What is wanted of the batch; to be done in a thread. Raises KafkaError(CORRUPT_MESSAGE)."""
        return self._wanted(_times(self._view, self._header))


Wanted: TypeAlias = "Callable[[Iterator[TimestampAndOffset]], TimestampAndOffset | None]"


def searched(search: Callable[[Looked], TimestampAndOffset | None]) -> TimestampAndOffset | None:
    """A search to its end on the spot, for who is in a thread, or asks seldom."""
    looked: Looked = {}
    while True:
        try:
            return search(looked)
        except Unseen as unseen:
            looked[unseen.key] = unseen.look()


def offset_for_timestamp(
    segments: Segments, timestamp: int, start_offset: int, looked: Looked
) -> TimestampAndOffset | None:
    """The first record at or after `start_offset` whose timestamp is at least the given one. Raises Unseen."""
    for segment in segments.since(start_offset):
        if segment.largest_timestamp() >= timestamp:
            before = segment.time_index.lookup(timestamp).offset
            position = segment.index.lookup(max(before, start_offset)).position
            found = _first(segment, position, timestamp, start_offset, looked)
            if found is not None:
                return found
    return None


def max_timestamp(segments: Segments, start_offset: int, looked: Looked) -> TimestampAndOffset | None:
    """The record with the largest timestamp of those from `start_offset` on, the first of several in its batch. Raises
    Unseen."""
    live = segments.since(start_offset)
    segment = max(live, key=lambda segment: segment.max_timestamp.timestamp)
    largest, last_offset = segment.max_timestamp
    if largest < 0:
        return None
    if last_offset >= start_offset:
        found = _first(segment, segment.index.lookup(last_offset).position, largest, start_offset, looked)
        if found is not None:
            return found
    return _largest_of_all(live, start_offset, looked)


def _largest_of_all(segments: Sequence[Segment], start_offset: int, looked: Looked) -> TimestampAndOffset | None:
    """The record with the largest timestamp, when the one that the indexes know of was deleted."""

    def wanted(times: Iterator[TimestampAndOffset]) -> TimestampAndOffset | None:
        live = (each for each in times if each.offset >= start_offset)
        return max(live, key=lambda each: each.timestamp, default=None)

    best: TimestampAndOffset | None = None
    for segment in segments:
        for at, header in segment.batches():
            if header.max_timestamp > (NO_TIMESTAMP if best is None else best.timestamp):
                found = _of_batch(segment, at, header, wanted, start_offset, looked, is_largest=True)
                if found is not None and found.timestamp > (NO_TIMESTAMP if best is None else best.timestamp):
                    best = found
    return best


def _first(
    segment: Segment, position: int, timestamp: int, start_offset: int, looked: Looked
) -> TimestampAndOffset | None:
    """The first record from a batch's position on that is at least that late, and not deleted."""

    def wanted(times: Iterator[TimestampAndOffset]) -> TimestampAndOffset | None:
        return next((each for each in times if each.timestamp >= timestamp and each.offset >= start_offset), None)

    for at, header in segment.batches(position):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            found = _of_batch(segment, at, header, wanted, start_offset, looked)
            if found is not None:
                return found
    return None


def _of_batch(
    segment: Segment,
    at: int,
    header: BatchHeader,
    wanted: Wanted,
    start_offset: int,
    looked: Looked,
    is_largest: bool = False,
) -> TimestampAndOffset | None:
    key = header.base_offset, is_largest
    found = looked.get(key)
    if key not in looked or (found is not None and found.offset < start_offset):
        raise Unseen(key, segment.view(at, at + header.size_bytes), header, wanted)
    return found


def _times(view: memoryview, header: BatchHeader) -> Iterator[TimestampAndOffset]:
    """Each record of a batch."""
    epoch = header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
    if header.magic < MAGIC_V2:
        for record in read_messages(view):
            yield TimestampAndOffset(record.timestamp, record.offset, epoch)
    else:
        for offset, timestamp in iter_whole_times(view, 0, header):
            yield TimestampAndOffset(timestamp, offset, epoch)
