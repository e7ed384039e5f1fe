"""The declarations of all loads. A round takes about two seconds, so a load over all peers takes about a minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench import spark, tools
from bench.coordinator_loads import COMMIT, GROUP, GROUPS, TRANSACTION_MS, TRANSACTIONS
from bench.load import Flow, Load, Method, NeededApi, Payload

SHARE = frozenset(
    {
        NeededApi.SHARE_GROUP_HEARTBEAT,
        NeededApi.SHARE_FETCH,
        NeededApi.SHARE_ACKNOWLEDGE,
        NeededApi.INCREMENTAL_ALTER_CONFIGS,
    }
)

LEADER_ONLY = ("acks=1", "enable.idempotence=false")
FETCH_BYTES = 1_048_576
LATENCY = ("p50_ms", "p99_ms", "p999_ms", "mean_ms", "cpu_s_per_million")
PER_REQUEST = ("cpu_s_per_million", "records_per_s", "p99_ms", "rss_peak_mb")

PRODUCE = Load(
    name="produce",
    title="produce 1 KB, acks=1",
    tool=tools.PRODUCER_PERFORMANCE,
    records=300_000,
    client=LEADER_ONLY,
    flow=Flow.RECEIVE,
)
PRODUCE_LZ4 = PRODUCE._replace(
    name="produce-lz4",
    title="produce 100 B, lz4",
    records=2_000_000,
    record_bytes=100,
    payload=Payload.LOG_LINES,
    client=(*LEADER_ONLY, "compression.type=lz4"),
)
CONSUME = Load(
    name="consume",
    title="consume 1 KB",
    tool=tools.CONSUME,
    records=500_000,
    filled_by=PRODUCE._replace(records=500_000),
    flow=Flow.SEND,
    chunk_bytes=FETCH_BYTES,
)
CONSUME_SHARE = CONSUME._replace(
    name="consume-share",
    title="consume 1 KB in a share group (JVM)",
    tool=tools.SHARE_CONSUMER_PERFORMANCE,
    records=1_000_000,  # joining the group takes a second or two of the round
    filled_by=PRODUCE._replace(records=1_000_000),
    warm_up_at_most=10,  # each round takes as long as two or three of other loads
    needs=SHARE,
    flow=None,
    figures=("cpu_s_per_million", "records_per_s", "rss_peak_mb", "private_mb"),
)
LATENCY_LOW = Load(
    name="latency",
    title="end to end, one record after the other",
    tool=tools.LATENCY,
    records=3_000,
    record_bytes=100,
    figures=LATENCY,
)

ACTIVITY = Load(
    name="pipeline-generate",
    title="generate events of 200 B",
    tool=spark.GENERATE,
    records=300_000,
    record_bytes=200,
    partitions=4,
)
PIPELINE_LOAD = ACTIVITY._replace(
    name="pipeline-load",
    title="load events of 200 B into Parquet (Spark)",
    tool=spark.LOAD,
    filled_by=ACTIVITY,
    figures=("cpu_s_per_gb", "mb_per_s", "records_per_s", "rss_peak_mb", "private_mb"),
)

TABLES = PIPELINE_LOAD._replace(
    name="pipeline-tables-10m",
    title="load 10 million records of 100 B into an Iceberg table (Spark)",
    tool=spark.LOAD_TABLE,
    records=10_000_000,
    record_bytes=100,
    filled_by=PRODUCE._replace(records=10_000_000, record_bytes=100, partitions=4),
    warm_up_at_most=0,  # each round starts Spark, and takes minutes
    figures=(*PIPELINE_LOAD.figures, *spark.COSTS, "file_mb"),
)
PLAIN_TABLES = TABLES._replace(
    name="pipeline-tables-plain-10m",
    title="load 10 million records of 100 B by Spark's own source and Iceberg's writer",
    tool=spark.PLAIN_TABLE,
)


def hundred_million(load: Load) -> Load:
    """Returns a load of ten million records with ten times as many."""
    return load._replace(
        name=load.name.replace("-10m", "-100m"),
        title=load.title.replace("10 million", "100 million"),
        records=100_000_000,
        filled_by=load.filled_by and load.filled_by._replace(records=100_000_000),
    )


LOADS: Mapping[str, Load] = {
    load.name: load
    for load in (
        PRODUCE,
        PRODUCE._replace(
            name="produce-idempotent", title="produce 1 KB, idempotent, 6 partitions", partitions=6, client=()
        ),
        PRODUCE_LZ4,
        PRODUCE._replace(
            name="produce-librdkafka",
            title="produce 1 KB, acks=1 (librdkafka)",
            tool=tools.PRODUCE,
            records=500_000,
            client=("acks=1", "linger.ms=5"),
            flow=None,
        ),
        PRODUCE._replace(
            name="produce-unbatched",
            title="produce 1 KB, unbatched",
            records=50_000,
            client=(*LEADER_ONLY, "batch.size=0"),
            chunk_bytes=1_000,
            figures=PER_REQUEST,
        ),
        PRODUCE._replace(
            name="produce-many",
            title="produce 100 B, 32 producers, 64 partitions",
            tool=tools.PRODUCE,
            records=500_000,
            record_bytes=100,
            clients=32,
            partitions=64,
            client=("acks=1", "linger.ms=5"),
            flow=None,
        ),
        CONSUME,
        CONSUME._replace(
            name="consume-lz4",
            title="consume 100 B, lz4",
            records=2_000_000,
            record_bytes=100,
            payload=Payload.LOG_LINES,
            filled_by=PRODUCE_LZ4,
        ),
        CONSUME._replace(
            name="consume-group", title="consume 1 KB in a group (JVM)", tool=tools.CONSUMER_PERFORMANCE, needs=GROUP
        ),
        CONSUME._replace(
            name="consume-fan-out",
            title="consume 1 KB, 5 consumers",
            records=150_000,
            clients=5,
            filled_by=PRODUCE._replace(records=150_000),
        ),
        CONSUME._replace(
            name="consume-cold",
            title="consume 1 KB, from disk",
            records=200_000,
            cold=True,
            filled_by=PRODUCE._replace(records=200_000),
        ),
        CONSUME_SHARE,
        CONSUME_SHARE._replace(
            name="consume-share-4", title="consume 1 KB, 4 share consumers on a partition (JVM)", clients=4
        ),
        CONSUME_SHARE._replace(
            name="consume-share-16", title="consume 1 KB, 16 share consumers on a partition (JVM)", clients=16
        ),
        LATENCY_LOW,
        LATENCY_LOW._replace(
            name="latency-steady", title="end to end, 1,000 records a second", records=3_000, rate=1_000
        ),
        LATENCY_LOW._replace(
            name="latency-jvm",
            title="end to end, one after the other (JVM)",
            tool=tools.END_TO_END_LATENCY,
            client=("acks=1",),
            needs=COMMIT,
            figures=("mean_ms", "cpu_s_per_million"),
        ),
        *GROUPS,
        *TRANSACTIONS,
        Load(
            name="idle-connections",
            title="2,000 idle connections",
            connections=2_000,
            method=Method.IDLE,
            figures=("kb_per_connection", "cpu_percent", "cpu_s_per_million", "rss_peak_mb"),
        ),
        Load(
            name="idle-10000",
            title="10,000 partitions and 9,900 idle connections",
            partitions=10_000,
            connections=9_900,  # a limit of 20,000 open files leaves room for 9,958
            method=Method.IDLE,
            figures=("rss_peak_mb", "private_mb", "kb_per_connection", "cpu_percent"),
        ),
        PRODUCE._replace(
            name="many-partitions",
            title="produce 1 KB, 2,000 partitions",
            tool=tools.PRODUCE,
            records=200_000,
            partitions=2_000,
            client=("acks=1",),
            flow=None,
            figures=("cpu_s_per_gb", "mb_per_s", "rss_idle_mb", "rss_peak_mb"),
        ),
        Load(
            name="start-up",
            title="start on an empty directory",
            method=Method.START_UP,
            rounds_at_least=10,
            figures=("ready_ms", "metadata_ms", "rss_idle_mb"),
        ),
        PIPELINE_LOAD,
    )
}

# Loads that take too long for every day: they are measured only if they are named.
LONG: Mapping[str, Load] = {
    load.name: load
    for load in (
        PRODUCE._replace(
            name="long-run",
            title="produce 100 GB of 1 KB at 180 MB/s, retention at 2 GB",
            records=5_000_000,
            rate=180_000,
            one_topic=True,
            topic=("retention.bytes=2147483648", "segment.bytes=268435456", "file.delete.delay.ms=1000"),
            flow=None,
            rounds_at_least=20,
            warm_up_at_most=2,  # each of 5 GB
            only="odradek",
            figures=("cpu_s_per_gb", "kernel_percent", "mb_per_s", "p99_ms", "rss_peak_mb", "private_mb"),
        ),
        PIPELINE_LOAD._replace(
            name="pipeline-load-10m",
            title="load 10 million events of 200 B into Parquet (Spark)",
            records=10_000_000,
            filled_by=ACTIVITY._replace(records=10_000_000),
        ),
        TABLES,
        PLAIN_TABLES,
        hundred_million(TABLES),
        hundred_million(PLAIN_TABLES),
    )
}


GOALS: Sequence[str] = (
    "start-up",
    "produce",
    "produce-idempotent",
    "produce-lz4",
    "produce-unbatched",
    "offset-commits",
    "group-commits",
    "group-heartbeats",
    *(f"transactions-{duration_ms}ms" for duration_ms in TRANSACTION_MS),
    "streams-word-count",
    "consume",
    "consume-lz4",
    "consume-share",
    "consume-share-4",
    "consume-share-16",
    "latency",
    "idle-10000",
    "long-run",
)
"""The loads in the table of goals (bench/page.py), in its order."""


class Curve(NamedTuple):
    """The same load at several values of one parameter, to show how a cost grows."""

    name: str
    title: str
    axis: str
    figure: str
    points: Mapping[int, Load]


def curve(name: str, title: str, axis: str, figure: str, points: Mapping[int, Load]) -> Curve:
    named = {
        value: load._replace(name=f"{name}-{value}", title=f"{load.title}, {axis}: {value:,}")
        for value, load in points.items()
    }
    return Curve(name, title, axis, figure, named)


SMALL = PRODUCE._replace(records=200_000, title="produce 1 KB", flow=None)
BATCHED = SMALL._replace(record_bytes=100, title="produce 100 B", figures=("cpu_s_per_million", "records_per_s"))

CURVES: Mapping[str, Curve] = {
    declared.name: declared
    for declared in (
        curve(
            "by-partitions",
            "Produce 1 KB over more and more partitions",
            "partitions",
            "cpu_s_per_gb",
            {
                n: SMALL._replace(tool=tools.PRODUCE, client=("acks=1",), partitions=n)
                for n in (1, 10, 100, 1_000, 10_000)
            },
        ),
        curve(
            "by-connections",
            "Produce 1 KB beside more and more connections",
            "connections",
            "cpu_s_per_gb",
            {n: SMALL._replace(connections=n - 1) for n in (1, 10, 100, 1_000, 5_000)},
        ),
        curve(
            "by-batch-size",
            "Produce 100 B records in larger and larger batches",
            "batch size (bytes)",
            "cpu_s_per_million",
            {
                n: BATCHED._replace(
                    records=min(1_000_000, 50_000 * n // 100), client=(*LEADER_ONLY, f"batch.size={n}", "linger.ms=50")
                )
                for n in (100, 1_000, 10_000, 100_000, 1_000_000)
            },
        ),
        curve(
            "by-shared-records",
            "Memory after more and more records that a share group has had and acknowledged",
            "records",
            "private_mb",
            {
                n: CONSUME_SHARE._replace(
                    title="consume 100 B in a share group (JVM)",
                    records=n,
                    record_bytes=100,
                    filled_by=PRODUCE._replace(records=n, record_bytes=100),
                )
                for n in (300_000, 1_000_000, 3_000_000)
            },
        ),
    )
}


def pick(words: Sequence[str]) -> list[Load]:
    """Returns the loads that `words` name: a load, a curve, `rows` (LOADS), `curves`, or `goals` (GOALS); no words mean
    rows and curves.

    Raises KeyError with a word that names nothing.
    """
    families = {
        **{name: [load] for name, load in (*LOADS.items(), *LONG.items())},
        **{name: list(declared.points.values()) for name, declared in CURVES.items()},
        **{load.name: [load] for declared in CURVES.values() for load in declared.points.values()},
        "rows": list(LOADS.values()),
        "goals": [{**LOADS, **LONG}[name] for name in GOALS],
        "curves": [load for declared in CURVES.values() for load in declared.points.values()],
    }
    return [load for word in words or ("rows", "curves") for load in families[word]]


def smaller(load: Load, divisor: int) -> Load:
    """Returns the same load with a fraction of its size, to show that the bench works."""
    return load._replace(
        records=max(load.clients, load.records // divisor),
        partitions=max(1, min(load.partitions, 8)),
        connections=min(load.connections, 20),
        filled_by=smaller(load.filled_by, divisor) if load.filled_by else None,
        rounds_at_least=0,
    )
