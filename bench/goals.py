"""What Odradek is to reach on each load, as ratios of medians in the same run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bench.figures import FIGURES, ratio
from bench.results import Row


class Goal(NamedTuple):
    """At most (for a throughput: at least) so many times what another peer shows."""

    figure: str
    other: str
    limit: float


class Verdict(NamedTuple):
    goal: Goal
    ratio: float
    reached: bool


OURS = "odradek"

# Against Apache Kafka, load by load. A load that is not here has the general goals only.
AGAINST_KAFKA: Mapping[str, Mapping[str, float]] = {
    "produce": {"cpu_s_per_gb": 0.45},
    "produce-idempotent": {"cpu_s_per_gb": 0.35},
    "produce-lz4": {"cpu_s_per_gb": 0.35},
    "produce-unbatched": {"cpu_s_per_million": 0.30},
    "consume": {"cpu_s_per_gb": 0.80},
    "consume-group": {"cpu_s_per_gb": 0.80},
    "consume-lz4": {"cpu_s_per_gb": 0.80},
    "consume-fan-out": {"cpu_s_per_gb": 0.80},
    "consume-share": {"cpu_s_per_million": 0.50, "records_per_s": 3.0},
    "consume-share-4": {"cpu_s_per_million": 0.50, "records_per_s": 3.0},
    "consume-share-16": {"cpu_s_per_million": 0.50, "records_per_s": 3.0},
    "latency": {"p50_ms": 1.0, "p99_ms": 1.0},
    "latency-steady": {"p50_ms": 1.0, "p99_ms": 1.0},
    "latency-jvm": {"mean_ms": 1.0},
    "start-up": {"ready_ms": 0.15, "metadata_ms": 0.15},
}
# On every load: throughput and memory against Apache Kafka.
GENERAL = (
    Goal("mb_per_s", "kafka", 1.0),
    Goal("rss_idle_mb", "kafka", 0.2),
    Goal("rss_peak_mb", "kafka", 0.3),
    Goal("private_mb", "kafka", 0.3),
)
# And of the figure of CPU that it shows first.
CPU_LIMITS = {"kfake": 1.0, "floor": 2.0}


def cpu_figure(figures: tuple[str, ...]) -> str | None:
    """The figure of the broker's CPU per unit of work that a load shows first."""
    return next((key for key in figures if key.startswith("cpu_s_")), None)


def goals(load: str, figures: tuple[str, ...]) -> Iterator[Goal]:
    for figure, limit in AGAINST_KAFKA.get(load, {}).items():
        yield Goal(figure, "kafka", limit)
    yield from GENERAL
    if (cpu := cpu_figure(figures)) is not None:
        yield from (Goal(cpu, other, limit) for other, limit in CPU_LIMITS.items())


def verdicts(load: str, figures: tuple[str, ...], peers: Mapping[str, Row]) -> Iterator[Verdict]:
    """Each goal whose figure the load shows and both sides have measured, and whether it is reached."""
    summaries = {name: row.summary() for name, row in peers.items()}
    for goal in goals(load, figures):
        if goal.figure not in figures or goal.other not in summaries or OURS not in summaries:
            continue
        found = ratio(summaries[OURS], summaries[goal.other], goal.figure)
        if found is not None:
            less = FIGURES[goal.figure].less_is_better
            yield Verdict(goal, found, found <= goal.limit if less else found >= goal.limit)
