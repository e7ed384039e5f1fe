"""The records in flight: batches in the order of their offsets, each with one run, or several if its records differ.

A batch has the records that were acquired together. It stays one run as long as it is acknowledged as a whole; from the
first acknowledgement of a part on it is tracked, by offset in Kafka and by runs here. An operation on a part of a batch
costs as much as the part has runs, however many the batch has. Source: Kafka's InFlightBatch, and the skip list that
SharePartition keeps them in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from coordinator.share_partition.by_offset import ByOffset
from coordinator.share_partition.run import Run
from coordinator.share_partition.run_index import RunIndex


class Span(NamedTuple):
    """Offsets first to last, both included, and a number of the caller's."""

    first: int
    last: int
    number: int


class InFlightBatch:
    """Offsets first to last, both included."""

    __slots__ = ("first", "is_tracked", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs: ByOffset[Run] = ByOffset()
        self.runs.add(run)
        self.is_tracked = False

    def __repr__(self) -> str:
        return f"InFlightBatch({self.runs})"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def is_within(self, first: int, last: int) -> bool:
        return self.first >= first and self.last <= last

    def part(self, first: int, last: int) -> list[Run]:
        """Returns the runs that have offsets from `first` to `last`, uncut."""
        return self.runs.between(first, last)

    def cut(self, first: int, last: int) -> list[Run]:
        """Returns the runs from `first` to `last`, cut at both ends; the batch is tracked from now on."""
        span = Span(max(first, self.first), min(last, self.last), 0)
        return [run for run, _ in self.cut_by([span] if span.first <= span.last else [])]

    def cut_by(self, spans: Sequence[Span]) -> list[tuple[Run, int]]:
        """Returns the runs of spans within the batch, cut at the spans' ends, each with its span's number. Each span
        begins where the span before it ends."""
        self.is_tracked = True
        if not spans:
            return []
        first, last = spans[0].first, spans[-1].last
        ends = [first, *[span.last + 1 for span in spans]]
        pieces: list[Run] = []
        for run in self.part(first, last):
            inside = ends[bisect_right(ends, run.first) : bisect_right(ends, run.last)]
            rest = run.split(inside) if inside else []
            if rest:
                self.runs.add_all(rest)
            pieces += [piece for piece in (run, *rest) if first <= piece.first <= last]
        if len(spans) == 1:
            return [(piece, spans[0].number) for piece in pieces]
        return list(_numbered(pieces, spans))

    def join(self, runs: Sequence[Run]) -> None:
        """Joins consecutive runs, and the runs before and after them, as far as neighbours are alike."""
        before = self.runs.floor(runs[0].first - 1) if runs[0].first > self.first else None
        after = self.runs.floor(runs[-1].last + 1) if runs[-1].last < self.last else None
        joined = before
        for run in (*runs, after):
            if run is None:
                return
            if joined is not None and joined.is_like(run):
                self.runs.remove(run)
                joined.absorb(run)
            else:
                joined = run

    def forget(self, runs: list[Run]) -> None:
        """Joins a batch's first runs, which are terminal and below the start offset."""
        for run in runs[1:]:
            self.runs.remove(run)
            runs[0].absorb(run)


def _numbered(runs: Iterable[Run], spans: Iterable[Span]) -> Iterator[tuple[Run, int]]:
    """Yields the runs, cut at the ends of the spans, each with the number of its span."""
    following = iter(spans)
    span = next(following)
    for run in runs:
        while span.last < run.first:
            span = next(following)
        yield run, span.number


class Cache:
    """Batches by their first offset, and an index of their runs."""

    __slots__ = ("batches", "index")

    def __init__(self) -> None:
        self.batches: ByOffset[InFlightBatch] = ByOffset()
        self.index = RunIndex()

    def __len__(self) -> int:
        return len(self.batches)

    def __bool__(self) -> bool:
        return bool(self.batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self.batches)

    @property
    def first_offset(self) -> int:
        """The first offset in flight; there must be one."""
        return self.batches.head.first

    @property
    def last_offset(self) -> int:
        """The last offset in flight; there must be one."""
        return self.batches.tail.last

    def runs(self) -> Iterator[Run]:
        """Yields all runs, in order."""
        for batch in self.batches:
            yield from batch.runs

    def add(self, run: Run) -> InFlightBatch:
        """Adds a batch with this run, and returns it."""
        batch = InFlightBatch(run)
        self.batches.add(batch)
        run.enter(self.index)
        return batch

    def floor(self, offset: int) -> InFlightBatch | None:
        """Returns the batch that has the offset, or else the batch before it."""
        return self.batches.floor(offset)

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """Returns the batches that have offsets from `first` to `last`."""
        return self.batches.between(first, last)

    def batch_of(self, run: Run) -> InFlightBatch:
        """Returns the batch that has the run."""
        batch = self.batches.floor(run.first)
        assert batch is not None
        return batch

    def join(self, runs: Sequence[Run]) -> None:
        """Joins each of these runs, in order, with its neighbours in the batch that are alike."""
        start = 0
        while start < len(runs):
            batch, end = self.batch_of(runs[start]), start + 1
            while end < len(runs) and runs[end].first == runs[end - 1].last + 1 <= batch.last:
                end += 1
            batch.join(runs[start:end])
            start = end

    def move_start(self, offset: int) -> None:
        """Moves the start offset forward; records below it are no longer counted."""
        start = self.index.start_offset
        for batch in self.batches.between(start, offset - 1):
            for run in batch.part(start, offset - 1):
                self.index.pass_over(run, offset)
        self.index.start_offset = offset

    def drop_until(self, offset: int) -> None:
        """Removes the batches up to this offset, which are all terminal and below the start offset."""
        while self.batches and self.batches.head.last <= offset:
            self.batches.remove(self.batches.head)

    def clear(self) -> None:
        """Removes all batches, which are all terminal."""
        self.batches.clear()
        self.index.done_count = 0
