"""Compares the counts of a pipeline's stages, window by window. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Cell(NamedTuple):
    """The records of a partition in one window of timestamps, which begins at `start_ms`."""

    topic: str
    partition: int
    start_ms: int


class Count(NamedTuple):
    """The number of records, the number of distinct offsets, and a digest of all offsets and records."""

    records: int = 0
    distinct: int = 0
    digest: int = 0


class Difference(NamedTuple):
    """The difference between a stage and the produced records. `altered`: the counts are equal, but the records
    differ.
    """

    stage: str
    records: int
    missing: int
    doubled: int
    foreign: int
    altered: bool

    @property
    def clean(self) -> bool:
        return not (self.missing or self.doubled or self.foreign or self.altered)

    @property
    def text(self) -> str:
        counts = ((self.missing, "missing"), (self.doubled, "doubled"), (self.foreign, "not from the topic"))
        words = [f"{count} {word}" for count, word in counts if count]
        return ", ".join([*words, *(["altered"] if self.altered else [])]) or "complete"


class Line(NamedTuple):
    """One partition and window in all stages."""

    cell: Cell
    produced: int
    stages: tuple[Difference, ...]

    @property
    def clean(self) -> bool:
        return all(stage.clean for stage in self.stages)


def compared(produced: Mapping[Cell, Count], stages: Mapping[str, Mapping[Cell, Count]]) -> list[Line]:
    """Returns a line for each cell that has records in any stage."""
    cells = sorted({*produced, *(cell for stage in stages.values() for cell in stage)})
    return [line(cell, produced.get(cell, Count()), stages) for cell in cells]


def line(cell: Cell, produced: Count, stages: Mapping[str, Mapping[Cell, Count]]) -> Line:
    differences = (difference(name, produced, counts.get(cell, Count())) for name, counts in stages.items())
    return Line(cell, produced.records, tuple(differences))


def difference(stage: str, produced: Count, there: Count) -> Difference:
    missing = max(0, produced.distinct - there.distinct)
    foreign = max(0, there.distinct - produced.distinct)
    altered = produced.distinct == there.distinct and produced.digest != there.digest
    return Difference(stage, there.records, missing, there.records - there.distinct, foreign, altered)


def by_partition(lines: list[Line]) -> list[Line]:
    """Returns the sums over windows."""
    sums: dict[Cell, Line] = {}
    for line in lines:
        cell = line.cell._replace(start_ms=0)
        before = sums.get(cell)
        sums[cell] = line._replace(cell=cell) if before is None else _sum(before, line)
    return list(sums.values())


def _sum(left: Line, right: Line) -> Line:
    stages = tuple(
        Difference(
            difference.stage,
            difference.records + other.records,
            difference.missing + other.missing,
            difference.doubled + other.doubled,
            difference.foreign + other.foreign,
            difference.altered or other.altered,
        )
        for difference, other in zip(left.stages, right.stages, strict=True)
    )
    return Line(left.cell, left.produced + right.produced, stages)
