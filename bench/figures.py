"""The figures of a round, and the medians, spreads and ratios of several rounds. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

GB = 1_000_000_000
MB = 1_000_000
MILLION = 1_000_000

Sample = Mapping[str, float]
"""The figures of one round, by key."""


class Figure(NamedTuple):
    """A measured quantity: its heading, its unit, and its number of digits."""

    key: str
    title: str
    unit: str
    digits: int
    less_is_better: bool = True


FIGURES: Mapping[str, Figure] = {
    figure.key: figure
    for figure in (
        Figure("cpu_s_per_gb", "CPU per GB", "s/GB", 3),
        Figure("follower_cpu_s_per_gb", "a follower's CPU per GB", "s/GB", 3),
        Figure("cpu_s_per_million", "CPU per million", "s/M", 3),
        Figure("kernel_percent", "of it the kernel's", "%", 0),
        Figure("cpu_percent", "CPU while idle", "%", 2),
        Figure("records_per_s", "throughput", "/s", 0, less_is_better=False),
        Figure("mb_per_s", "throughput", "MB/s", 1, less_is_better=False),
        Figure("mean_ms", "latency mean", "ms", 3),
        Figure("p50_ms", "latency p50", "ms", 3),
        Figure("p99_ms", "latency p99", "ms", 3),
        Figure("p999_ms", "latency p99.9", "ms", 3),
        Figure("pause_ms", "longest pause", "ms", 0),
        Figure("errors", "records given up", "", 0),
        Figure("took_ms", "all of it", "ms", 0),
        Figure("partitions", "partitions", "", 0, less_is_better=False),
        Figure("create_ms", "creation", "ms", 0),
        Figure("stop_ms", "stop of all", "ms", 0),
        Figure("restart_ms", "start, until in sync", "ms", 0),
        Figure("failover_ms", "failover of all", "ms", 0),
        Figure("rejoin_ms", "start of one, until in sync", "ms", 0),
        Figure("ready_ms", "start to ready", "ms", 0),
        Figure("metadata_ms", "start to Metadata", "ms", 0),
        Figure("rss_idle_mb", "memory idle", "MB", 1),
        Figure("rss_peak_mb", "memory peak", "MB", 1),
        Figure("private_mb", "memory without mapped files", "MB", 1),
        Figure("written_mb", "written by tasks", "MB", 0),
        Figure("shuffled_mb", "shuffled", "MB", 1),
        Figure("spilled_mb", "spilled", "MB", 1),
        Figure("file_mb", "mean data file", "MB", 1),
        Figure("kb_each", "memory grown by each", "KB", 2),
        Figure("kb_per_connection", "memory per connection", "KB", 1),
    )
}


class Spread(NamedTuple):
    """The median of several rounds, with the minimum and the maximum."""

    median: float
    least: float
    greatest: float
    rounds: int


def spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values), len(values))


def summarise(samples: Sequence[Sample]) -> dict[str, Spread]:
    """Returns the spread of each measured figure, in the order of FIGURES."""
    measured = {key: [sample[key] for sample in samples if key in sample] for key in FIGURES}
    return {key: spread(values) for key, values in measured.items() if values}


def ratio(one: Mapping[str, Spread], base: Mapping[str, Spread], key: str) -> float | None:
    """Returns the ratio of `one`'s median to `base`'s; None if one of them lacks the figure, or the base is zero."""
    if key not in one or key not in base or not base[key].median:
        return None
    return one[key].median / base[key].median


NOTHING: Sample = MappingProxyType({})


class Cpu(NamedTuple):
    """Processor time, and the kernel's share of it (0 to 1)."""

    total_s: float
    kernel_share: float


class ToolResult(NamedTuple):
    """A tool's result: the number of records (or requests), payload bytes and seconds, and the figures that the tool
    measured itself.
    """

    records: int
    size_bytes: int
    seconds: float
    figures: Sample = NOTHING

    def as_json(self) -> str:
        """Returns a line that `bench.tools.parse_json` reads."""
        return json.dumps(self._replace(figures=dict(self.figures))._asdict())


def cpu_figure(figures: tuple[str, ...]) -> str | None:
    """Returns the figure of CPU per unit of work that a load shows first."""
    return next((key for key in figures if key.startswith("cpu_s_")), None)


def per_work(work: ToolResult, cpu: Cpu) -> dict[str, float]:
    """Returns the broker's CPU seconds and the wall clock, each per unit of work."""
    sample = {
        "cpu_s_per_million": cpu.total_s / work.records * MILLION,
        "kernel_percent": cpu.kernel_share * 100,
        "records_per_s": work.records / work.seconds,
        **work.figures,
    }
    if work.size_bytes:
        sample |= {"cpu_s_per_gb": cpu.total_s / work.size_bytes * GB, "mb_per_s": work.size_bytes / MB / work.seconds}
    return sample


def percentiles_ms(latencies_ns: Sequence[int]) -> dict[str, float]:
    """Returns nearest-rank p50, p99 and p99.9 of latencies in nanoseconds, as milliseconds, and their mean."""
    ordered = sorted(latencies_ns)
    ranks = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    last = len(ordered) - 1
    at = {key: ordered[min(last, int(rank * len(ordered)))] / 1e6 for key, rank in ranks.items()}
    return at | {"mean_ms": sum(ordered) / len(ordered) / 1e6}
