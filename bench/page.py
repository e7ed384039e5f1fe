"""Writes the measured parts of docs/benchmarks.md from result files: `python -m bench.page [RESULTS]`.

Each part is between two comments, `measured: NAME` and `end`. The text outside of them is written by hand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench import saturation
from bench.clusters.page import clusters
from bench.clusters.rows import ROWS
from bench.figures import GB
from bench.goals import OURS, GoalVerdict, verdicts
from bench.jars import ROOT
from bench.loads import GOALS, LOADS
from bench.report import figure
from bench.results import RESULTS, LoadResult, PeerResult, saved
from bench.saturation import Saturation
from bench.security_page import TLS, authorizer, tls
from bench.tables import NOTHING, ROUNDS, UNKNOWN, days, figure_title, judged, of_peer, rounds, table
from bench.tried import missed

PAGE: Final = ROOT / "docs" / "benchmarks.md"
PART: Final = "<!-- measured: {name} -->\n"
END: Final = "<!-- end -->\n"

ELSEWHERE: Final = "xeon"
"""The subfolder of results that were measured on another processor than the main ones."""

CORES: Final = 16
NETWORK_BYTES_PER_S: Final = 10e9 / 8
CONSUMERS: Final = 2
"""Number of times that each record is read, in the calculation for a larger machine."""


def goal_rows(result: LoadResult, *, secured: bool = False) -> Iterator[list[str]]:
    """Yields a row for each goal of the load that has figures: of peers with TLS if `secured`, else of the others."""
    for verdict in verdicts(result.load, result.figures, result.peers):
        key = verdict.goal.figure
        if (verdict.goal.ours != OURS) != secured:
            continue
        yield [
            result.title,
            figure_title(key),
            of_other(result.peers, verdict),
            of_peer(result.peers[verdict.goal.ours], key),
            f"{verdict.ratio:.2f}",
            *judged(verdict),
        ]


def of_other(peers: Mapping[str, PeerResult], verdict: GoalVerdict) -> str:
    """Returns the peer that the goal is compared with, and its figure: cold, and warm."""
    goal = verdict.goal
    if goal.other not in peers:
        return goal.other
    row, cold = peers[goal.other], peers[goal.other].cold()
    first = f"{figure(goal.figure, cold[goal.figure].median)} → " if goal.figure in cold else ""
    return f"{row.title}: {first}{of_peer(row, goal.figure)}"


def goals(folder: Path) -> str:
    """Returns the table of goals, the warm-up of each peer, and what was tried for goals that are missed."""
    results = {result.load: result for result in saved(folder)}
    shown = [results[name] for name in GOALS if name in results]
    if not shown:
        return NOTHING
    rows = [row for result in shown for row in goal_rows(result)]
    rows += [row for result in saved(folder / TLS) for row in goal_rows(result, secured=True)]
    headings = ("load", "figure", "against: cold → warm", "Odradek", "ratio", "goal", "")
    return f"Measured on {shown[0].machine}, {days(shown)}.\n\n{table(headings, rows)}\n{timed(shown)}{missed(shown)}"


def timed(results: Iterable[LoadResult]) -> str:
    """Returns the table of rounds, with the time that each load took. It is not known of clusters."""
    rows = ([*rounds(result), f"{result.took_s:.0f} s" if result.took_s else UNKNOWN] for result in results)
    return table((*ROUNDS, "took"), rows)


def elsewhere(folder: Path) -> str:
    """Returns the ratios of the goals on another processor, beside those of the main results."""
    there = folder / ELSEWHERE
    pairs = list(in_both(folder, there))
    if not pairs:
        return NOTHING
    rows = [row for pair in pairs for row in ratio_rows(*pair)]
    rows += [row for pair in in_both(folder / TLS, there / TLS) for row in ratio_rows(*pair, secured=True)]
    headings = ("load", "figure", "ratio above", "ratio there", "goal", "")
    others = [other for _, other in pairs]
    return (
        f"Measured on {others[0].machine}, {days(others)}.\n\n{table(headings, rows)}\n"
        f"{timed(others)}{missed(others, above=[ours for ours, _ in pairs])}"
    )


def in_both(here: Path, there: Path) -> Iterator[tuple[LoadResult, LoadResult]]:
    """Yields both results of each load, and of each row of clusters, that both folders have. Loads with goals come
    first."""
    ours, theirs = ({result.load: result for result in saved(folder)} for folder in (here, there))
    order = dict.fromkeys((*GOALS, *LOADS, *ROWS))
    return ((ours[name], theirs[name]) for name in order if name in ours and name in theirs)


def ratio_rows(here: LoadResult, there: LoadResult, *, secured: bool = False) -> Iterator[list[str]]:
    """Yields a row for each goal with figures in both results: of peers with TLS if `secured`, else of the others."""
    known = {verdict.goal: verdict for verdict in verdicts(here.load, here.figures, here.peers)}
    for verdict in verdicts(there.load, there.figures, there.peers):
        goal, key = verdict.goal, verdict.goal.figure
        if goal not in known or (goal.ours != OURS) != secured:
            continue
        yield [
            f"{there.title}, TLS" if secured else there.title,
            figure_title(key),
            f"{known[goal].ratio:.2f}",
            f"{verdict.ratio:.2f}",
            *judged(verdict),
        ]


def cores(folder: Path) -> str:
    """Returns what a broker does in a second of a core, and the calculation for a larger machine."""
    rows = saturation.saved(folder)
    if not rows:
        return NOTHING
    measured = [
        [row.flow, str(row.brokers), f"{row.mb_per_s:,.0f}", f"{row.busy_cores:.2f}", f"{row.gb_per_core_s:.2f}"]
        for row in rows
    ]
    headings = ("flow", "brokers", "MB/s", "cores busy", "GB for a second of a core")
    return f"{table(headings, measured)}\n{larger(rows)}"


def larger(rows: Sequence[Saturation]) -> str:
    """Returns the calculation for CORES cores and a network of 10 Gbit/s."""
    alone = {row.flow: row for row in rows if row.brokers == 1}
    produce, consume = alone["produce"], alone["consume"]
    for_each_gb = 1 / produce.gb_per_core_s + CONSUMERS / consume.gb_per_core_s
    network = NETWORK_BYTES_PER_S / GB / max(1, CONSUMERS)
    needed = network * for_each_gb
    return (
        f"A gigabyte that is produced once and consumed {CONSUMERS} times costs 1 ÷ {produce.gb_per_core_s:.2f} + "
        f"{CONSUMERS} ÷ {consume.gb_per_core_s:.2f} = {for_each_gb:.2f} s of a core. A network of 10 Gbit/s carries "
        f"{NETWORK_BYTES_PER_S / GB:.2f} GB/s each way, so {network:.2f} GB/s of it can be produced while it is read "
        f"{CONSUMERS} times; that takes {needed:.1f} cores. {CORES} cores, and so {CORES} brokers, would carry "
        f"{CORES / for_each_gb:.1f} GB/s: {'the network' if needed < CORES else 'the processors'} would be full first. "
        f"One broker, which is one core, carries {1 / for_each_gb:.2f} GB/s of it.\n"
    )


def profiles(folder: Path) -> str:
    """Returns links to the flame graphs of `make profile`."""
    files = sorted(folder.glob("profile-*.svg"))
    links = [f"- [{file.stem}]({os.path.relpath(file, PAGE.parent)})\n" for file in files]
    return "".join(links) or "There are none.\n"


PARTS: Final[Mapping[str, Callable[[Path], str]]] = {
    "profiles": profiles,
    "goals": goals,
    "elsewhere": elsewhere,
    "cores": cores,
    "clusters": clusters,
    "tls": tls,
    "authorizer": authorizer,
}


def written(text: str, folder: Path) -> str:
    """Returns the page with its measured parts replaced by the results. Raises ValueError if a part is missing."""
    for name, part in PARTS.items():
        begin = PART.format(name=name)
        before, mark, rest = text.partition(begin)
        _, end, after = rest.partition(END)
        if not (mark and end):
            raise ValueError(f"docs/benchmarks.md has no {begin.strip()} with an end")
        text = f"{before}{begin}\n{part(folder)}\n{END}{after}"
    return text


if __name__ == "__main__":
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    PAGE.write_text(written(PAGE.read_text(), results))
    print(PAGE)
