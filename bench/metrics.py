"""The cost of metrics: compares the same broker with and without them, in one interleaved run. `make bench-metrics`.

    python -m bench.metrics [--loads LOAD …] [--rounds N] [--results FOLDER]

A round of one broker is compared with the round of the other that came right before or after it, because other work of
the machine affects both. The cost of metrics is the median of these ratios.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench import report
from bench.figures import Sample, cpu_figure
from bench.load import Load
from bench.loads import pick
from bench.peers.brokers import Odradek, WatchedOdradek
from bench.peers.peer import PeerProcess
from bench.results import RESULTS, LoadResult, result_of, save
from bench.rounds import InterleavedRounds
from bench.trial import allow_many_files, unwind_at_sigterm

LOADS: Final = ("produce", "consume", "produce-unbatched")
ROUNDS: Final = 15
LIMIT: Final = 1.01
"""The largest acceptable ratio: every request is counted, one in many is timed, and a scrape does all other work."""


class Comparison(NamedTuple):
    """Two brokers that differ in one feature."""

    program: str
    what: str
    """The feature that the second broker has."""
    without: type[PeerProcess]
    having: type[PeerProcess]
    folder: str
    """The subfolder of results, because the results of all peers are for the same loads."""


METRICS: Final = Comparison("bench.metrics", "metrics", Odradek, WatchedOdradek, "metrics")
FOLDER: Final = METRICS.folder


class Cost(NamedTuple):
    """The ratio of CPU with the feature to CPU without it, over the rounds of a load."""

    load: str
    figure: str
    ratio: float
    """The median of the rounds' ratios."""
    low: float
    high: float
    """The true median is between `low` and `high`, in 95 of 100 runs with as many rounds."""
    what: str = METRICS.what

    @property
    def is_above(self) -> bool:
        """True if the cost exceeds LIMIT by more than chance explains."""
        return self.low > LIMIT

    def __str__(self) -> str:
        percent = f"{(LIMIT - 1) * 100:.0f} %"
        is_within = self.high <= LIMIT
        verdict = f"within {percent}" if is_within else f"these rounds can't distinguish it from {percent}"
        return (
            f"{self.load}: {self.figure} ×{self.ratio:.3f} with {self.what} ({self.low:.3f} to {self.high:.3f}): "
            f"{f'above {percent}' if self.is_above else verdict}"
        )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the interval that contains the true median in 95 of 100 cases, whatever the distribution: the order
    statistics that are 1.96 standard deviations of a binomial from the middle. With few values, it contains all of
    them.
    """
    ordered, count = sorted(values), len(values)
    rank = max(int(count / 2 - 0.98 * sqrt(count)), 0)
    return ordered[rank], ordered[count - 1 - rank]


def cost_of(
    load: str, figure: str, without: Sequence[Sample], having: Sequence[Sample], what: str = METRICS.what
) -> Cost:
    """Returns the cost from the rounds, in their order. Raises ValueError if one of the brokers has fewer than two."""
    ratios = [having_it[figure] / other[figure] for other, having_it in zip(without, having, strict=True)]
    if len(ratios) < 2:
        raise ValueError(f"{load}: {len(ratios)} rounds are too few")
    return Cost(load, figure, median(ratios), *interval(ratios), what)


def measured(load: Load, rounds: int, compared: Comparison) -> LoadResult:
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as work:
        began = time.monotonic()
        peers = InterleavedRounds(load, (compared.without, compared.having), Path(work), tell)
        rows = peers.run(rounds, warm_up=True)
        return result_of(load, rows, time.monotonic() - began)


def tell(line: str) -> None:
    print(line, file=sys.stderr)


def costs(result: LoadResult, compared: Comparison = METRICS) -> Cost | None:
    """Returns the cost of the feature; None if one of the brokers has failed, for which its row has the reason."""
    figure = cpu_figure(result.figures)
    without, having = result.peers[compared.without.name], result.peers[compared.having.name]
    if figure is None or any(row.reason for row in (without, having)):
        return None
    return cost_of(result.load, figure, without.samples, having.samples, compared.what)


def parser_of(compared: Comparison) -> argparse.ArgumentParser:
    """Returns the parser of the options that all comparisons have."""
    parser = argparse.ArgumentParser(prog=compared.program, description=f"The cost of {compared.what}.")
    parser.add_argument("--loads", nargs="+", default=LOADS, help=f"loads ({' '.join(LOADS)})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each ({ROUNDS})")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the JSON files ({RESULTS})")
    return parser


def compare(compared: Comparison, options: argparse.Namespace) -> int:
    """Measures, shows and saves. Returns 1 if the feature certainly costs more than LIMIT, or a broker has failed."""
    allow_many_files()
    unwind_at_sigterm()
    console, verdicts = report.console(), []
    for load in pick(options.loads):
        result = measured(load, options.rounds, compared)
        save(options.results / compared.folder, result)
        report.show(console, result)
        verdicts.append(costs(result, compared))
    for cost in verdicts:
        print(cost or "a broker failed: see above")
    return int(any(cost is None or cost.is_above for cost in verdicts))


if __name__ == "__main__":
    sys.exit(compare(METRICS, parser_of(METRICS).parse_args()))
