"""The cost of TLS, as a part of docs/benchmarks.md."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.peers import PEERS
from bench.results import LoadResult, saved
from bench.tables import NOTHING, of_peer, table

FOLDER: Final = "tls"
"""The results of `make bench` with peers that use TLS, beside the others: a load has one file in a folder."""

SHOWN: Final = ("odradek", "odradek-tls", "kafka", "kafka-tls")
COST: Final = "cpu_s_per_gb"


def tls(folder: Path) -> str:
    """Returns the processor time of each load with and without TLS, and its ratio to Apache Kafka's with it."""
    results = list(saved(folder / FOLDER))
    if not results:
        return NOTHING
    headings = ("CPU per GB", *(PEERS[name].title for name in SHOWN), "ratio with TLS")
    rows = [[one.title, *(_cost(one, name) for name in SHOWN), _ratio(one)] for one in results]
    return f"Measured on {results[0].machine}, {results[0].when[:10]}.\n\n{table(headings, rows)}"


def _cost(result: LoadResult, name: str) -> str:
    return of_peer(result.peers[name], COST) if name in result.peers else "–"


def _ratio(result: LoadResult) -> str:
    ours, theirs = (
        result.peers[name].summary().get(COST) if name in result.peers else None
        for name in ("odradek-tls", "kafka-tls")
    )
    return "–" if ours is None or theirs is None else f"{ours.median / theirs.median:.2f}"
