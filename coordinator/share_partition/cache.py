"""The records in flight: batches in the order of their offsets, each one run, or several once its records part ways.

A batch has the records that were acquired at once. It stays one run as long as it is acknowledged as a whole; from the
first acknowledgement of a part on it is tracked, as Kafka does by offset and we by runs. Source: Kafka's InFlightBatch,
and the skip list that SharePartition keeps them in.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from coordinator.share_partition.run import Run


class InFlightBatch:
    """Offsets first to last, both included."""

    __slots__ = ("first", "is_tracked", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]
        self.is_tracked = False

    def __repr__(self) -> str:
        return f"InFlightBatch({self.runs})"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def is_within(self, first: int, last: int) -> bool:
        return self.first >= first and self.last <= last

    def part(self, first: int, last: int) -> Sequence[Run]:
        """The runs that have offsets from `first` to `last`, as they are."""
        if len(self.runs) == 1:
            return self.runs if self.first <= last and self.last >= first else ()
        return [run for run in self.runs if run.last >= first and run.first <= last]

    def cut(self, first: int, last: int) -> Sequence[Run]:
        """The runs from `first` to `last`, cut so that none goes beyond; the batch is tracked from now on."""
        self.is_tracked = True
        self._cut_before(first)
        self._cut_before(last + 1)
        return self.part(first, last)

    def _cut_before(self, offset: int) -> None:
        if not self.first < offset <= self.last:
            return
        index = bisect_right(self.runs, offset, key=_first) - 1
        if self.runs[index].first < offset:
            self.runs.insert(index + 1, self.runs[index].split(offset))

    def tidy(self) -> None:
        """Makes one of neighbours that are alike."""
        runs = self.runs
        if len(runs) == 1:
            return
        merged = [runs[0]]
        for run in runs[1:]:
            if merged[-1].is_like(run):
                merged[-1].last = run.last
            else:
                merged.append(run)
        self.runs = merged


def _first(run: Run) -> int:
    return run.first


class Cache:
    """Batches by their first offset."""

    __slots__ = ("batches", "firsts")

    def __init__(self) -> None:
        self.batches: list[InFlightBatch] = []
        self.firsts: list[int] = []

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self.batches)

    @property
    def last_offset(self) -> int:
        """The last offset in flight; there must be one."""
        return self.batches[-1].last

    def add(self, batch: InFlightBatch) -> None:
        index = bisect_left(self.firsts, batch.first)
        self.firsts.insert(index, batch.first)
        self.batches.insert(index, batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """The batch that has the offset, or the one before it."""
        index = bisect_right(self.firsts, offset)
        return self.batches[index - 1] if index else None

    def starting(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches whose first offset is from `first` to `last`."""
        return self.batches[bisect_left(self.firsts, first) : bisect_right(self.firsts, last)]

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that have offsets from `first` to `last`."""
        start = bisect_right(self.firsts, first)
        if start and self.batches[start - 1].last >= first:
            start -= 1
        return self.batches[start : bisect_right(self.firsts, last)]

    def drop_first(self, count: int) -> None:
        del self.batches[:count]
        del self.firsts[:count]

    def clear(self) -> None:
        self.batches.clear()
        self.firsts.clear()
