"""The rows: each is a measurement of a cluster, as a function of a running cluster."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench import tools
from bench.clusters import topics
from bench.clusters.cluster import BROKERS, BenchCluster, until
from bench.clusters.many import many_partitions
from bench.clusters.prober import Prober
from bench.coordinator_loads import TRANSACTION_MS, WORD_COUNT
from bench.figures import GB, MB, MILLION, Sample, ToolResult, percentiles_ms
from bench.load import Load, ToolRun
from bench.trial import TOOL_TIMEOUT_S, ToolFailed, use

PROBED_PARTITIONS = 15
LEADER, FOLLOWER = BROKERS[:2]
SETTLE_S = 5.0
"""Pause before a kill: the broker that was killed last is in sync again, but its JVM still compiles."""


class Sizes(NamedTuple):
    """The sizes of the measurements."""

    records: int = 300_000
    failovers: int = 50
    partitions: int = 10_000


SMALL = Sizes(records=2_000, failovers=4, partitions=30)
"""Tiny sizes, to show that the bench works."""


class RowRun(NamedTuple):
    """One measurement of one cluster."""

    cluster: BenchCluster
    number: int
    """The number of the round; negative during the warm-up."""
    work: Path
    sizes: Sizes


Measure = Callable[[RowRun], Sample]


class ClusterRow(NamedTuple):
    """A row of the report."""

    name: str
    title: str
    measure: Measure
    figures: tuple[str, ...]
    rounds: int = 3
    """Maximum number of rounds that count; some rows take many measurements in one round."""
    is_warmed: bool = True
    is_usual: bool = True
    """True if the row is measured when none is named."""


def spread_over(partitions: int, replicas: int = len(BROKERS)) -> list[list[int]]:
    """Returns assignments in which the brokers lead in turn."""
    count = len(BROKERS)
    return [[BROKERS[(first + place) % count] for place in range(replicas)] for first in range(partitions)]


def topic_of(run: RowRun, load: Load) -> str:
    """Returns the name of the round's topic."""
    return f"{load.name}-{run.number if run.number >= 0 else f'warm-up{-run.number}'}"


def load_of(run: RowRun, name: str, partitions: int, *client: str) -> Load:
    """Returns a load of records of a kilobyte, by Apache Kafka's own tool."""
    return Load(name, name, tools.PRODUCER_PERFORMANCE, run.sizes.records, partitions=partitions, client=client)


def per_gb(run: RowRun, load: Load, seconds: float, work: ToolResult, key: str = "cpu_s_per_gb") -> dict[str, float]:
    """Returns a cost per GB of values, and the throughput."""
    return {key: seconds / load.size_bytes * GB, "mb_per_s": load.size_bytes / MB / work.seconds}


def produce(run: RowRun, load: Load) -> Sample:
    """Measures the brokers' cost of a load with three replicas."""
    topic = topic_of(run, load)
    topics.create(run.cluster, topic, spread_over(load.partitions))
    before_s = run.cluster.cpu_s()
    work = use(load.tool, ToolRun(run.cluster.bootstrap, topic, load, run.number, run.work))
    spent_s = run.cluster.cpu_s() - before_s
    topics.delete(run.cluster, topic)
    tool_figures = {key: work.figures[key] for key in ("p50_ms", "p99_ms")}
    tool_figures["records_per_s"] = work.records / work.seconds
    return {**per_gb(run, load, spent_s, work), **tool_figures, **run.cluster.memory()}


def produce_large_batches(run: RowRun) -> Sample:
    """Measures batches of 64 KB."""
    client = ("acks=all", "enable.idempotence=false", "batch.size=65536", "linger.ms=5")
    return produce(run, load_of(run, "cluster-produce", 3, *client))


def produce_by_defaults(run: RowRun) -> Sample:
    """Measures Java's defaults: idempotent, acks=all, batches of 16 KB."""
    return produce(run, load_of(run, "cluster-produce-defaults", 6))


def produce_in_transactions(duration_ms: int) -> Measure:
    """Returns the measurement of Java's defaults in transactions of this duration."""

    def measure(run: RowRun) -> Sample:
        load = load_of(run, f"cluster-transactions-{duration_ms}ms", 6)
        return produce(run, load._replace(tool=tools.transactional(duration_ms)))

    return measure


def count_words(run: RowRun) -> Sample:
    """Measures the brokers' cost of a word count by Kafka Streams, whose topics have three replicas."""
    load = WORD_COUNT._replace(name=f"cluster-{WORD_COUNT.name}", records=min(WORD_COUNT.records, run.sizes.records))
    assert load.filled_by is not None
    topic = topic_of(run, load)
    topics.create(run.cluster, topic, spread_over(load.partitions))
    filling = load.filled_by._replace(records=load.records)
    use(filling.tool, ToolRun(run.cluster.bootstrap, topic, filling, run.number, run.work))
    before_s = run.cluster.cpu_s()
    work = use(load.tool, ToolRun(run.cluster.bootstrap, topic, load, run.number, run.work))
    spent_s = run.cluster.cpu_s() - before_s
    topics.delete(run.cluster, topic)
    costs = {"cpu_s_per_million": spent_s / work.records * MILLION, "records_per_s": work.records / work.seconds}
    return {**costs, **run.cluster.memory()}


def consume_meanwhile(run: RowRun) -> Sample:
    """Measures the same with Java's defaults while a consumer reads all records."""
    load = load_of(run, "cluster-consume", 6)
    topic = topic_of(run, load)
    topics.create(run.cluster, topic, spread_over(load.partitions))
    job = ToolRun(run.cluster.bootstrap, topic, load._replace(client=()), run.number, run.work)
    before_s = run.cluster.cpu_s()
    with subprocess.Popen(tools.CONSUME.command(job), stdout=subprocess.PIPE, text=True) as consumer:
        work = use(load.tool, job)
        try:
            consumer.communicate(timeout=TOOL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            consumer.kill()
            raise ToolFailed(f"the consumer has not read all within {TOOL_TIMEOUT_S} s") from None
    if consumer.returncode:
        raise ToolFailed(f"the consumer ended with status {consumer.returncode}")
    spent_s = run.cluster.cpu_s() - before_s
    topics.delete(run.cluster, topic)
    return {**per_gb(run, load, spent_s, work), **run.cluster.memory()}


def follow(run: RowRun) -> Sample:
    """Measures the cost of a broker that only follows; another broker gets the load."""
    load = load_of(run, "cluster-follow", 1, "acks=1", "enable.idempotence=false", "batch.size=65536", "linger.ms=5")
    topic = topic_of(run, load)
    topics.create(run.cluster, topic, [[LEADER, FOLLOWER]])
    follower = run.cluster.brokers[FOLLOWER]
    before_s = follower.cpu_s()
    work = use(load.tool, ToolRun(run.cluster.addresses[LEADER], topic, load, run.number, run.work))
    wait_committed(run.cluster, topic, load.records)
    spent_s = follower.cpu_s() - before_s
    topics.delete(run.cluster, topic)
    return per_gb(run, load, spent_s, work, "follower_cpu_s_per_gb")


def wait_committed(cluster: BenchCluster, topic: str, records: int) -> None:
    """Waits until a topic with one partition has this many committed records."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "watermarks", "log_level": 0})
    try:
        place = TopicPartition(topic, 0)
        until(f"{records} records of {topic} are committed", lambda: committed_end(consumer, place) >= records)
    finally:
        consumer.close()


def committed_end(consumer: object, place: object) -> int:
    """Returns the high watermark of a partition."""
    _, high = consumer.get_watermark_offsets(place, timeout=10.0, cached=False)  # type: ignore[attr-defined]
    return int(high)


def probed(run: RowRun, name: str) -> tuple[str, list[list[int]], Prober]:
    """Returns a topic, its assignments, and a prober that is running on it."""
    topic, assignments = f"{name}-{run.number}", spread_over(PROBED_PARTITIONS)
    topics.create(run.cluster, topic, assignments)
    prober = Prober(run.cluster.bootstrap, topic, PROBED_PARTITIONS)
    prober.start()
    return topic, assignments, prober


def failover(run: RowRun) -> Sample:
    """Kills the broker that leads most partitions, again and again, and measures the time from the kill until its
    partitions acknowledge a record.
    """
    topic, assignments, prober = probed(run, "cluster-failover")
    client = topics.admin(run.cluster.bootstrap)
    times_ns: list[int] = []
    while len(times_ns) < run.sizes.failovers:
        led = led_by(topics.partitions(client, topic))
        victim = max(led, key=lambda broker_id: len(led[broker_id]))
        time.sleep(SETTLE_S)
        killed_ns = run.cluster.brokers[victim].kill()
        times_ns += [at_ns - killed_ns for at_ns in prober.wait_after(killed_ns, led[victim])]
        run.cluster.brokers[victim].start()
        run.cluster.brokers[victim].wait_until_ready()
        topics.wait_in_sync(run.cluster, topic, assignments)
    prober.stop()
    return {**percentiles_ms(times_ns), "errors": float(prober.errors)}


def led_by(partitions: Mapping[int, topics.Led]) -> dict[int, list[int]]:
    """Returns the partitions that each broker leads."""
    led: dict[int, list[int]] = {}
    for index, partition in partitions.items():
        led.setdefault(partition.leader, []).append(index)
    return led


def rolling_restart(run: RowRun) -> Sample:
    """Stops and starts one broker after the other, each after all replicas are in sync again."""
    topic, assignments, prober = probed(run, "cluster-rolling")
    began = time.monotonic()
    for broker in run.cluster.brokers.values():
        broker.stop()
        broker.start()
        broker.wait_until_ready()
        topics.wait_in_sync(run.cluster, topic, assignments)
    took_ms = (time.monotonic() - began) * 1000
    prober.stop()
    return {"pause_ms": max(prober.pauses_ns()) / 1e6, "errors": float(prober.errors), "took_ms": took_ms}


def many(run: RowRun) -> Sample:
    """Measures ten thousand partitions of three replicas."""
    return many_partitions(run.cluster, spread_over(run.sizes.partitions))


COSTS = ("cpu_s_per_gb", "mb_per_s", "rss_peak_mb", "private_mb")

ROWS = {
    row.name: row
    for row in (
        ClusterRow("cluster-produce", "produce 1 KB, acks=all, 64 KB batches, 3 replicas", produce_large_batches,
            ("cpu_s_per_gb", "mb_per_s", "p50_ms", "p99_ms", "rss_peak_mb", "private_mb")),
        ClusterRow("cluster-produce-defaults", "produce 1 KB, Java's defaults, 6 partitions, 3 replicas",
            produce_by_defaults, ("cpu_s_per_gb", "mb_per_s", "p50_ms", "p99_ms", "rss_peak_mb", "private_mb")),
        *(
            ClusterRow(f"cluster-transactions-{duration_ms}ms",
                f"produce 1 KB, transactions of {duration_ms:,} ms, 6 partitions, 3 replicas",
                produce_in_transactions(duration_ms), ("cpu_s_per_gb", "records_per_s", "mb_per_s", "private_mb"))
            for duration_ms in TRANSACTION_MS
        ),
        ClusterRow(f"cluster-{WORD_COUNT.name}", f"{WORD_COUNT.title}, 3 replicas", count_words,
            ("cpu_s_per_million", "records_per_s", "rss_peak_mb", "private_mb")),
        ClusterRow("cluster-consume", "the same, and a consumer reads all of it meanwhile", consume_meanwhile, COSTS),
        ClusterRow("cluster-follow", "follow a leader that gets 1 KB records", follow,
            ("follower_cpu_s_per_gb", "mb_per_s")),
        ClusterRow("cluster-failover", "kill -9 of a leader, until its partitions acknowledge again", failover,
            ("p50_ms", "p99_ms", "errors"), rounds=1, is_warmed=False),
        ClusterRow("cluster-rolling", "rolling restart, the longest pause of any partition", rolling_restart,
            ("pause_ms", "errors", "took_ms"), rounds=1, is_warmed=False),
        ClusterRow("cluster-many", "many partitions of three replicas", many,
            ("partitions", "create_ms", "cpu_percent", "private_mb", "failover_ms", "rejoin_ms", "stop_ms",
             "restart_ms"),
            rounds=1, is_warmed=False, is_usual=False),
    )
}  # fmt: skip
