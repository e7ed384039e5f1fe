"""The command line: `python -m bench.clusters [--rows …] [--clusters …]`. See docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench import pages, report, warmth
from bench.clusters.cluster import BROKERS, FLAVOURS, QUICK, BenchCluster
from bench.clusters.rows import ROWS, SMALL, ClusterRow, RowRun, Sizes
from bench.figures import Sample, cpu_figure
from bench.peers.peer import Unavailable
from bench.results import RESULTS, LoadResult, PeerResult, machine, save
from bench.trial import unwind_at_sigterm

RECORD_BYTES = 1_000

LATER_WARM_UP = 6
"""Maximum number of warm-up rounds before a later row, because the first row has warmed the brokers."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.clusters", description="The same load on clusters of three brokers.")
    usual = " ".join(row.name for row in ROWS.values() if row.is_usual)
    parser.add_argument("--rows", nargs="+", choices=[*ROWS], metavar="ROW", help=f"of: {' '.join(ROWS)} ({usual})")
    parser.add_argument(
        "--clusters", nargs="+", choices=[*FLAVOURS], help=("clusters that take part (all)"), default=[*FLAVOURS]
    )
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (3)")
    parser.add_argument("--failovers", type=int, default=Sizes().failovers, help="number of kills in a failover (50)")
    parser.add_argument(
        "--partitions", type=int, default=Sizes().partitions, help=("partitions of cluster-many (10,000)")
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the JSON files ({RESULTS})")
    parser.add_argument("--small", action="store_true", help="tiny sizes, one round: tests the benchmark itself")
    return parser.parse_args()


class Clusters:
    """The clusters that take part. If a cluster fails, its row has the reason, and the others continue."""

    def __init__(
        self, names: Iterable[str], work: Path, sizes: Sizes, stack: ExitStack, settings: Mapping[str, str]
    ) -> None:
        self._work = work
        self._sizes = sizes
        self._reasons: dict[str, str] = {}
        self._unavailable: set[str] = set()
        self.clusters = {name: BenchCluster(FLAVOURS[name], work, settings) for name in names}
        for name, cluster in self.clusters.items():
            stack.callback(cluster.stop)
            self._try(name, lambda cluster=cluster: start(cluster))

    def _try(self, name: str, action: object) -> Sample | None:
        if name in self._reasons:
            return None
        try:
            return action()  # type: ignore[operator,no-any-return]
        except Exception as error:
            self._reasons[name] = str(error) if isinstance(error, Unavailable) else f"{type(error).__name__}: {error}"
            if isinstance(error, Unavailable):
                self._unavailable.add(name)
            return None

    def measure(self, row: ClusterRow, rounds: int, warm_up: int) -> LoadResult:
        """Measures a row in rounds, each cluster in turn, and returns its result."""
        warmed: Mapping[str, list[Sample]] = {name: [] for name in self.clusters}
        counted: Mapping[str, list[Sample]] = {name: [] for name in self.clusters}
        for number in range(1, (warm_up if row.is_warmed else 0) + 1):
            self._round(row, -number, warmed, only_cold=True)
        for number in range(min(rounds, row.rounds)):
            self._round(row, number, counted, only_cold=False)
        return self._result(row, warmed, counted)

    def _round(self, row: ClusterRow, number: int, samples: Mapping[str, list[Sample]], *, only_cold: bool) -> None:
        cost = cpu_figure(row.figures)
        for name, cluster in self.clusters.items():
            if only_cold and cost and not warmth.needs_more([sample[cost] for sample in samples[name]]):
                continue
            print(f"{row.name}: {name}: {f'round {number + 1}' if number >= 0 else 'warm-up'}", file=sys.stderr)
            run = RowRun(cluster, number, self._work, self._sizes)
            sample = self._try(name, lambda run=run: row.measure(run))
            if sample is not None:
                samples[name].append(sample)

    def _result(
        self, row: ClusterRow, warmed: Mapping[str, list[Sample]], counted: Mapping[str, list[Sample]]
    ) -> LoadResult:
        peers = {
            name: PeerResult(
                cluster.flavour.title,
                counted[name],
                self._reasons.get(name),
                name in self._reasons and name not in self._unavailable,
                tuple(warmed[name]),
            )
            for name, cluster in self.clusters.items()
        }
        when = datetime.now(UTC).isoformat(timespec="seconds")
        return LoadResult(
            row.name,
            row.title,
            "bench.clusters",
            self._sizes.records,
            RECORD_BYTES,
            row.figures,
            when,
            machine(),
            peers,
        )


def start(cluster: BenchCluster) -> None:
    """Formats and starts a cluster. Raises Unavailable, NotRunning."""
    cluster.lay_out()
    cluster.start()


def measured(rows: Sequence[ClusterRow], options: argparse.Namespace, sizes: Sizes) -> Iterable[LoadResult]:
    """Yields the result of each row. A row that leaves many data behind gets clusters of its own, one after the
    other.
    """
    shared = [row for row in rows if row.is_usual]
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="odradek-bench-") as work:
        if shared:
            written_bytes = sizes.records * RECORD_BYTES * len(BROKERS) * len(options.clusters)
            stack.enter_context(pages.backed(4 * written_bytes))  # the brokers and clients need memory as well
            clusters = Clusters(options.clusters, Path(work), sizes, stack, QUICK)
            for place, row in enumerate(shared):
                warm_up = 0 if options.small else LATER_WARM_UP if place else warmth.MOST_ROUNDS
                yield clusters.measure(row, options.rounds, warm_up)
            stack.close()
    for row in (row for row in rows if not row.is_usual):
        results = [alone(row, name, options, sizes) for name in options.clusters]
        peers = {name: peer for result in results for name, peer in result.peers.items()}
        yield results[0]._replace(peers=peers)


def alone(row: ClusterRow, name: str, options: argparse.Namespace, sizes: Sizes) -> LoadResult:
    """Returns the result of a row that runs one cluster at a time."""
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work, ExitStack() as stack:
        return Clusters([name], Path(work), sizes, stack, {}).measure(row, options.rounds, 0)


def main() -> int:
    """Measures, shows, saves. Returns exit status 1 if a cluster failed that should have served."""
    options = arguments()
    unwind_at_sigterm()
    sizes = Sizes(failovers=options.failovers, partitions=options.partitions)
    if options.small:
        sizes, options.rounds = SMALL, 1
    rows = [ROWS[name] for name in options.rows] if options.rows else [row for row in ROWS.values() if row.is_usual]
    console, results = report.console(), []
    for result in measured(rows, options, sizes):
        results.append(result)
        save(options.results / "smoke" if options.small else options.results, result)
        report.show(console, result)
    return int(report.any_failed(results))


if __name__ == "__main__":
    sys.exit(main())
