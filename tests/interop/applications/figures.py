"""The figures of each application, which `make test-applications` writes beside the results of suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from bench import wheel

RESULTS = Path(__file__).parents[1] / "suites" / "results" / "applications.json"
AT_LEAST_ONCE, EXACTLY_ONCE = "at least once", "exactly once"


class Figures(NamedTuple):
    """The output of an application that passed its test: each part came at least once, and nothing else."""

    application: str
    output: str
    guarantee: str
    expected: int
    """Number of records, lines or tasks that had to come."""
    received: int
    """Number that came, with those that came again."""
    killed: str
    """The processes that were killed."""


class Row(NamedTuple):
    """A row of the table."""

    figures: Figures
    seconds: int
    commit: str


def load(file: Path = RESULTS) -> list[Row]:
    """Returns the rows by the names of the applications."""
    rows = json.loads(file.read_text())["applications"] if file.exists() else []
    return [Row(Figures(**row["figures"]), row["seconds"], row["commit"]) for row in rows]


def keep(figures: Figures, seconds: float, file: Path = RESULTS) -> None:
    """Writes an application's row, which replaces its earlier one."""
    new = Row(figures, round(seconds), wheel.commit())
    rows = {row.figures.application: row for row in [*load(file), new]}
    kept = [{**rows[name]._asdict(), "figures": rows[name].figures._asdict()} for name in sorted(rows, key=str.lower)]
    file.write_text(json.dumps({"applications": kept}, indent=1) + "\n")
