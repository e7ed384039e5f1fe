"""Finds a record's offset by timestamp, for ListOffsets (KIP-33, KIP-734).

The search finds the batch by indexes and headers. The batch's records may inflate to a hundred times its size, so the
caller searches them in a thread (`Unseen.look`), and then repeats the search, in the current log, with the result.
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
    """A record's timestamp and offset, and the leader epoch in which it was written, or None if unknown."""

    timestamp: int
    offset: int
    leader_epoch: int | None


Looked: TypeAlias = "dict[tuple[int, bool], TimestampAndOffset | None]"
"""The results of searched batches, None for a batch without a match. The key is the batch's base offset, and True if
the search is for the largest timestamp."""


class Search(NamedTuple):
    """The bounds of a search, and the results so far."""

    start_offset: int
    largest_record: int
    """max.decompressed.message.bytes; a compressed record of more bytes ends the search."""
    looked: Looked


class Unseen(Exception):
    """A batch whose records must be searched before the search can continue."""

    def __init__(
        self, key: tuple[int, bool], view: memoryview, header: BatchHeader, pick: Pick, largest_record: int
    ) -> None:
        super().__init__(key)
        self.key = key
        """The key for the result of `look` in Looked."""
        self._view = view
        self._header = header
        self._pick = pick
        self._largest_record = largest_record

    def look(self) -> TimestampAndOffset | None:
        """Searches the batch. For a worker thread. Raises KafkaError: CORRUPT_MESSAGE, INVALID_RECORD."""
        return self._pick(_times(self._view, self._header, self._largest_record))


Pick: TypeAlias = "Callable[[Iterator[TimestampAndOffset]], TimestampAndOffset | None]"


def searched(search: Callable[[Looked], TimestampAndOffset | None]) -> TimestampAndOffset | None:
    """Runs a whole search in the calling thread. For worker threads and rare calls."""
    looked: Looked = {}
    while True:
        try:
            return search(looked)
        except Unseen as unseen:
            looked[unseen.key] = unseen.look()


def offset_for_timestamp(segments: Segments, timestamp: int, search: Search) -> TimestampAndOffset | None:
    """Returns the first record from the search's start on with at least this timestamp. Raises Unseen."""
    for segment in segments.since(search.start_offset):
        if segment.largest_timestamp() >= timestamp:
            before = segment.time_index.lookup(timestamp).offset
            position = segment.index.lookup(max(before, search.start_offset)).position
            match = _first(segment, position, timestamp, search)
            if match is not None:
                return match
    return None


def max_timestamp(segments: Segments, search: Search) -> TimestampAndOffset | None:
    """Returns the record with the largest timestamp from the search's start on, the first of several in its batch.
    Raises Unseen."""
    live = segments.since(search.start_offset)
    segment = max(live, key=lambda segment: segment.max_timestamp.timestamp)
    largest, last_offset = segment.max_timestamp
    if largest < 0:
        return None
    if last_offset >= search.start_offset:
        match = _first(segment, segment.index.lookup(last_offset).position, largest, search)
        if match is not None:
            return match
    return _largest_of_all(live, search)


def _largest_of_all(segments: Sequence[Segment], search: Search) -> TimestampAndOffset | None:
    """Returns the record with the largest timestamp, if the record that the indexes point to was deleted."""

    def pick(times: Iterator[TimestampAndOffset]) -> TimestampAndOffset | None:
        live = (record for record in times if record.offset >= search.start_offset)
        return max(live, key=lambda record: record.timestamp, default=None)

    best: TimestampAndOffset | None = None
    for segment in segments:
        for at, header in segment.batches():
            if header.max_timestamp > (NO_TIMESTAMP if best is None else best.timestamp):
                match = _of_batch(segment, at, header, pick, search, is_largest=True)
                if match is not None and match.timestamp > (NO_TIMESTAMP if best is None else best.timestamp):
                    best = match
    return best


def _first(segment: Segment, position: int, timestamp: int, search: Search) -> TimestampAndOffset | None:
    """Returns the first record from a batch's position on with at least this timestamp, from the search's start on."""
    start_offset = search.start_offset

    def pick(times: Iterator[TimestampAndOffset]) -> TimestampAndOffset | None:
        return next(
            (record for record in times if record.timestamp >= timestamp and record.offset >= start_offset), None
        )

    for at, header in segment.batches(position):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            match = _of_batch(segment, at, header, pick, search)
            if match is not None:
                return match
    return None


def _of_batch(
    segment: Segment,
    at: int,
    header: BatchHeader,
    pick: Pick,
    search: Search,
    is_largest: bool = False,
) -> TimestampAndOffset | None:
    key = header.base_offset, is_largest
    match = search.looked.get(key)
    if key not in search.looked or (match is not None and match.offset < search.start_offset):
        raise Unseen(key, segment.view(at, at + header.size_bytes), header, pick, search.largest_record)
    return match


def _times(view: memoryview, header: BatchHeader, largest: int) -> Iterator[TimestampAndOffset]:
    """Yields the records of a batch."""
    epoch = header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
    if header.magic < MAGIC_V2:
        for record in read_messages(view, largest=largest):
            yield TimestampAndOffset(record.timestamp, record.offset, epoch)
    else:
        for offset, timestamp in iter_whole_times(view, 0, header, largest=largest):
            yield TimestampAndOffset(timestamp, offset, epoch)
