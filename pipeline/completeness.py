"""Compares the stages of a pipeline: counts of one window against those of another stage. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Cell(NamedTuple):
    """A partition's records with timestamps from `start_ms` on, for the length of a window."""

    topic: str
    partition: int
    start_ms: int


class Count(NamedTuple):
    """Records, the different offsets among them, and a digest of each offset with its record."""

    records: int = 0
    distinct: int = 0
    digest: int = 0


class Difference(NamedTuple):
    """How a stage differs from what was produced. `altered`: the counts agree, the records do not."""

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
    """One partition and window, through all stages."""

    cell: Cell
    produced: int
    stages: tuple[Difference, ...]

    @property
    def clean(self) -> bool:
        return all(stage.clean for stage in self.stages)


def compared(produced: Mapping[Cell, Count], stages: Mapping[str, Mapping[Cell, Count]]) -> list[Line]:
    """Returns a line for each cell that any stage has."""
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
            one.stage,
            one.records + other.records,
            one.missing + other.missing,
            one.doubled + other.doubled,
            one.foreign + other.foreign,
            one.altered or other.altered,
        )
        for one, other in zip(left.stages, right.stages, strict=True)
    )
    return Line(left.cell, left.produced + right.produced, stages)
