"""The part of docs/benchmarks.md about clusters: each figure of each row and cluster, and the goals. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.clusters.cluster import FLAVOURS
from bench.clusters.rows import ROWS
from bench.figures import ratio
from bench.goals import OURS, verdicts
from bench.results import LoadResult, saved
from bench.tables import NOTHING, ROUNDS, UNKNOWN, days, figure_title, judged, of_peer, rounds, table
from bench.tried import missed

BASE: Final = "kafka"
ORDER: Final = (BASE, OURS, "odradek-alone")
assert set(ORDER) == set(FLAVOURS)


def clusters(folder: Path) -> str:
    """Returns the table of all measured rows, the warm-up of the clusters, and the clusters that failed."""
    results = {result.load: result for result in saved(folder)}
    shown = [results[name] for name in ROWS if name in results]
    if not shown:
        return NOTHING
    headings = ("row", "figure", *(FLAVOURS[name].title for name in ORDER), "ratio", "goal", "")
    rows = [line for result in shown for line in lines(result)]
    return (
        f"Measured on {shown[0].machine}, {days(shown)}. The ratio is that of Odradek's brokers to Apache "
        f"Kafka's under the same controller.\n\n{table(headings, rows)}\n"
        f"{table(ROUNDS, map(rounds, shown))}{''.join(failed(shown))}"
        f"{missed(shown)}"
    )


def lines(result: LoadResult) -> Iterator[list[str]]:
    """Yields a line for each figure of a row."""
    goals = {verdict.goal.figure: verdict for verdict in verdicts(result.load, result.figures, result.peers)}
    summaries = {name: row.summary() for name, row in result.peers.items()}
    for key in result.figures:
        times = ratio(summaries.get(OURS, {}), summaries.get(BASE, {}), key)
        line = [
            result.title,
            figure_title(key),
            *(of_peer(result.peers[name], key) if name in result.peers else UNKNOWN for name in ORDER),
            UNKNOWN if times is None else f"{times:.2f}",
        ]
        if key in goals:
            yield [*line, *judged(goals[key])]
        else:
            yield [*line, "", ""]


def failed(results: Sequence[LoadResult]) -> Iterator[str]:
    """Yields the clusters without figures, and the reasons."""
    for result in results:
        for row in result.peers.values():
            if row.reason:
                yield f"\n{result.title}: {row.title}: {row.reason}\n"
