"""Parts of the tables in docs/benchmarks.md. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.figures import FIGURES
from bench.goals import GoalVerdict
from bench.report import figure
from bench.results import LoadResult, PeerResult

NOTHING = "Nothing is measured.\n"
UNKNOWN = "–"
ROUNDS = ("load", "warm-up rounds", "counted rounds")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def figure_title(key: str) -> str:
    """Returns the name of a figure, with its unit if it has one."""
    one = FIGURES[key]
    return f"{one.title}, {one.unit}" if one.unit else one.title


def days(results: Sequence[LoadResult]) -> str:
    """Returns the days of the measurements."""
    return ", ".join(sorted({result.when[:10] for result in results}))


def of_peer(row: PeerResult, key: str) -> str:
    """Returns the median of a figure of a peer."""
    summary = row.summary()
    return figure(key, summary[key].median) if key in summary else UNKNOWN


def warmed(result: LoadResult) -> str:
    """Returns the number of warm-up rounds of each peer."""
    rows = [(name, row) for name, row in result.peers.items() if row.warm_up]
    counts = [
        f"{name} {len(row.warm_up)}{'' if row.is_settled(result.figures) else ' (not stable)'}" for name, row in rows
    ]
    return ", ".join(counts) or UNKNOWN


def rounds(result: LoadResult) -> list[str]:
    """Returns the cells below ROUNDS: the name of the load, and its numbers of rounds."""
    return [result.title, warmed(result), str(max(len(row.samples) for row in result.peers.values()))]


def judged(verdict: GoalVerdict) -> tuple[str, str]:
    """Returns two cells: the limit of a goal, and whether it is reached."""
    sign = "≤" if FIGURES[verdict.goal.figure].less_is_better else "≥"
    return f"{sign} {verdict.goal.limit:g}", "reached" if verdict.reached else "**missed**"
