"""The goals of Odradek for each load: ratios of medians in the same run, and a few absolute limits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from bench.coordinator_loads import TRANSACTION_MS
from bench.figures import FIGURES, Sample, cpu_figure, ratio
from bench.results import PeerResult

OURS = "odradek"
LIMIT = "limit"
"""Used instead of a peer's name: the goal limits the figure itself."""
ITS_YOUTH = "first tenth"
"""Used instead of a peer's name: the goal compares the last tenth of a long run with its first tenth."""


class Goal(NamedTuple):
    """A limit on the ratio of a figure to another peer's figure: a maximum, or a minimum for throughputs."""

    figure: str
    other: str
    limit: float
    ours: str = OURS


class GoalVerdict(NamedTuple):
    goal: Goal
    ratio: float
    reached: bool


def against(other: str, **limits: float) -> tuple[Goal, ...]:
    return tuple(Goal(figure, other, limit) for figure, limit in limits.items())


CONSUME = against("kafka", cpu_s_per_gb=0.55, mb_per_s=1.0)
REQUESTS = against("kafka", cpu_s_per_million=0.35, p99_ms=0.6)
TRANSACTIONS = against("kafka", cpu_s_per_gb=0.5, records_per_s=1.2)
WORD_COUNT = against("kafka", cpu_s_per_million=0.5, records_per_s=1.2)
SHARE = against("kafka", cpu_s_per_million=0.4, records_per_s=2.5)
LATENCY = (*against("kafka", p50_ms=0.5, p99_ms=0.5), *against("kfake", p50_ms=1.0, p99_ms=1.0))
AGE = against(ITS_YOUTH, cpu_s_per_gb=1.05, private_mb=1.05)
CLUSTER = against("kafka", cpu_s_per_gb=0.45, mb_per_s=1.3)
TLS_PRODUCE = Goal("cpu_s_per_gb", "kafka-tls", 0.6, "odradek-tls")
NO_ERROR = against(LIMIT, errors=0)
"""The client must not give up any record."""

# The goals of single loads. A load that is not here has only the general goals.
BY_LOAD: Mapping[str, tuple[Goal, ...]] = {
    "produce": (
        *against("kafka", cpu_s_per_gb=0.4, mb_per_s=1.0),
        TLS_PRODUCE,
        *against("kfake", cpu_s_per_gb=0.8),
        *against("floor", cpu_s_per_gb=2.0),
    ),
    "produce-librdkafka": (TLS_PRODUCE,),
    "produce-idempotent": (*against("kafka", cpu_s_per_gb=0.4, mb_per_s=1.0), *against("kfake", cpu_s_per_gb=0.8)),
    "produce-lz4": against("kafka", cpu_s_per_gb=0.55, mb_per_s=1.0),
    "produce-unbatched": REQUESTS,
    "offset-commits": REQUESTS,
    "group-commits": REQUESTS,
    "group-heartbeats": REQUESTS,
    **{f"transactions-{duration_ms}ms": TRANSACTIONS for duration_ms in TRANSACTION_MS},
    "streams-word-count": WORD_COUNT,
    "consume": (*CONSUME, Goal("cpu_s_per_gb", "kafka-tls", 0.4, "odradek-tls")),
    "consume-group": CONSUME,
    "consume-lz4": CONSUME,
    "consume-fan-out": CONSUME,
    "consume-share": SHARE,
    "consume-share-4": SHARE,
    "consume-share-16": SHARE,
    "latency": LATENCY,
    "latency-steady": LATENCY,
    "latency-jvm": against("kafka", mean_ms=0.5),
    "start-up": against(LIMIT, ready_ms=150, rss_idle_mb=40),
    "idle-10000": against(LIMIT, rss_peak_mb=300),
    "long-run": AGE,
    "cluster-produce": CLUSTER,
    "cluster-produce-defaults": CLUSTER,
    "cluster-consume": against("kafka", cpu_s_per_gb=0.45),
    "cluster-follow": against("kafka", follower_cpu_s_per_gb=0.45),
    **{f"cluster-transactions-{duration_ms}ms": TRANSACTIONS for duration_ms in TRANSACTION_MS},
    "cluster-streams-word-count": WORD_COUNT,
    "cluster-failover": (*against("kafka", p50_ms=1.0, p99_ms=1.0), *NO_ERROR),
    "cluster-rolling": NO_ERROR,
    "cluster-many": against("kafka", failover_ms=1.0),
}
# On every load: memory against Apache Kafka, and CPU against kfake.
GENERAL = against("kafka", rss_idle_mb=0.2, rss_peak_mb=0.3, private_mb=0.3)
CPU_AGAINST_KFAKE = 1.0


def goals(load: str, figures: tuple[str, ...]) -> Iterator[Goal]:
    own = BY_LOAD.get(load, ())
    yield from own
    yield from GENERAL
    cpu = cpu_figure(figures)
    if cpu is not None and (cpu, "kfake") not in {(goal.figure, goal.other) for goal in own}:
        yield Goal(cpu, "kfake", CPU_AGAINST_KFAKE)


def ageing(samples: list[Sample], figure: str) -> float | None:
    """Returns the ratio of the last tenth of a run's rounds to the first tenth, for a figure; None without rounds."""
    values = [sample[figure] for sample in samples if figure in sample]
    tenth = -(-len(values) // 10)
    return median(values[-tenth:]) / median(values[:tenth]) if values and median(values[:tenth]) else None


def measured(goal: Goal, peers: Mapping[str, PeerResult]) -> float | None:
    """Returns the value that the goal limits; None if a side of the ratio was not measured."""
    ours = peers[goal.ours].summary() if goal.ours in peers else {}
    if goal.figure not in ours:
        return None
    if goal.other == LIMIT:
        return ours[goal.figure].median
    if goal.other == ITS_YOUTH:
        return ageing(peers[goal.ours].samples, goal.figure)
    return ratio(ours, peers[goal.other].summary(), goal.figure) if goal.other in peers else None


def verdicts(load: str, figures: tuple[str, ...], peers: Mapping[str, PeerResult]) -> Iterator[GoalVerdict]:
    """Yields each goal whose figure was measured on both sides, and whether it is reached."""
    for goal in goals(load, figures):
        value = measured(goal, peers) if goal.figure in figures else None
        if value is not None:
            less = FIGURES[goal.figure].less_is_better
            yield GoalVerdict(goal, value, value <= goal.limit if less else value >= goal.limit)
