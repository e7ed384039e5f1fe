"""The cost of TLS and of an authorizer, as parts of docs/benchmarks.md."""

from __future__ import annotations

from pathlib import Path

from bench.figures import cpu_figure
from bench.peers import PEERS
from bench.results import LoadResult, saved
from bench.tables import NOTHING, UNKNOWN, figure_title, of_peer, table
from bench.tried import missed

TITLES = ("load", "figure")
TLS = "tls"
"""The subfolder of the results with TLS, and the end of the names of their peers."""


def tls(folder: Path) -> str:
    """Returns the cost of each load with and without TLS."""
    return _part(folder / TLS, TLS)


def authorizer(folder: Path) -> str:
    """Returns the cost of each load with and without an authorizer."""
    return _part(folder / "acls", "acls")


def _part(folder: Path, suffix: str) -> str:
    """Returns the table of the results in a subfolder; they have a folder of their own because a folder has one file
    per load.
    """
    results = list(saved(folder))
    if not results:
        return NOTHING
    secured, other = f"odradek-{suffix}", f"kafka-{suffix}"
    sides = ("odradek", secured, "kafka", other)
    ratios = (f"{PEERS[secured].title} ÷ without", f"÷ {PEERS[other].title}")
    rows = [_row(result, sides, ((secured, "odradek"), (secured, other))) for result in results]
    headings = (*TITLES, *(PEERS[name].title for name in sides), *ratios)
    heading = f"Measured on {results[0].machine}, {results[0].when[:10]}."
    return f"{heading}\n\n{table(headings, rows)}{missed(results, secured)}"


def _row(result: LoadResult, sides: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> list[str]:
    key = cpu_figure(result.figures) or result.figures[0]
    medians = {name: row.summary()[key].median for name, row in result.peers.items() if key in row.summary()}
    costs = [of_peer(result.peers[name], key) if name in medians else UNKNOWN for name in sides]
    ratios = [f"{medians[one] / medians[two]:.2f}" if {one, two} <= medians.keys() else UNKNOWN for one, two in pairs]
    return [result.title, figure_title(key), *costs, *ratios]
