"""The records in flight: batches in the order of their offsets, each with one run, or several if its records differ.

A batch has the records that were acquired together. It stays one run as long as it is acknowledged as a whole; from the
first acknowledgement of a part on it is tracked, by offset in Kafka and by runs here. An operation on a part of a batch
costs as much as the part has runs, however many the batch has. Source: Kafka's InFlightBatch, and the skip list that
SharePartition keeps them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator.share_partition.by_offset import ByOffset
from coordinator.share_partition.run import Run
from coordinator.share_partition.run_index import RunIndex


class InFlightBatch:
    """Offsets first to last, both included."""

    __slots__ = ("first", "is_tracked", "last", "runs")

    def __init__(self, run: Run) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = ByOffset[Run]()
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
        span = max(first, self.first), min(last, self.last), 0
        return [run for run, _ in self.cut_by((span,))]

    def cut_by(self, spans: Iterable[tuple[int, int, int]]) -> Iterator[tuple[Run, int]]:
        """Yields the runs of spans within the batch, cut at the spans' ends, each with the span's third number."""
        self.is_tracked = True
        rest: Run | None = None
        for first, last, number in spans:
            while first <= last:
                run = self._run_at(first) if rest is None or rest.first != first else rest
                rest = self._split(run, last + 1) if run.last > last else None
                first = run.last + 1
                yield run, number

    def _run_at(self, offset: int) -> Run:
        """Returns the run that begins at an offset of the batch, after a cut if needed."""
        run = self.runs.floor(offset)
        assert run is not None
        return run if run.first == offset else self._split(run, offset)

    def _split(self, run: Run, offset: int) -> Run:
        rest = run.split(offset)
        self.runs.add(rest)
        return rest

    def join_before(self, offset: int) -> None:
        """Joins the runs on both sides of the boundary before `offset`, if they are alike."""
        if not self.first < offset <= self.last:
            return
        run, before = self.runs.floor(offset), self.runs.floor(offset - 1)
        assert run is not None
        assert before is not None
        if run is not before and before.is_like(run):
            self.runs.remove(run)
            before.absorb(run)

    def forget(self, runs: list[Run]) -> None:
        """Joins a batch's first runs, which are terminal and below the start offset."""
        for run in runs[1:]:
            self.runs.remove(run)
            runs[0].absorb(run)


class Cache:
    """Batches by their first offset, and an index of their runs."""

    __slots__ = ("batches", "index")

    def __init__(self) -> None:
        self.batches = ByOffset[InFlightBatch]()
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

    def join(self, runs: Iterable[Run]) -> None:
        """Joins each of these runs, in order, with its neighbours in the batch that are alike."""
        joined = -1
        for run in runs:
            batch = self.batch_of(run)
            if run.first != joined:
                batch.join_before(run.first)
            joined = run.last + 1
            batch.join_before(joined)

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
