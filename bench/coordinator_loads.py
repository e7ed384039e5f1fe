"""The loads of coordinators: groups, their offsets, and transactions. `bench.loads` includes them."""

from __future__ import annotations

from bench import tools
from bench.load import Load, NeededApi, Payload

GROUP = frozenset(
    {
        NeededApi.FIND_COORDINATOR,
        NeededApi.JOIN_GROUP,
        NeededApi.SYNC_GROUP,
        NeededApi.HEARTBEAT,
        NeededApi.OFFSET_FETCH,
    }
)
COMMIT = frozenset({NeededApi.FIND_COORDINATOR, NeededApi.OFFSET_COMMIT, NeededApi.OFFSET_FETCH})
CONSUMER_GROUP = frozenset({NeededApi.FIND_COORDINATOR, NeededApi.CONSUMER_GROUP_HEARTBEAT, NeededApi.OFFSET_FETCH})
TRANSACTION = frozenset(
    {NeededApi.FIND_COORDINATOR, NeededApi.INIT_PRODUCER_ID, NeededApi.ADD_PARTITIONS_TO_TXN, NeededApi.END_TXN}
)

LATENCY = ("p50_ms", "p99_ms", "cpu_s_per_million")
RATE = ("records_per_s", "cpu_s_per_million", "rss_peak_mb")
RATE_AND_LATENCY = ("records_per_s", "p50_ms", "p99_ms", "cpu_s_per_million")
KIP_848 = ("group.protocol=consumer",)

FILLED = Load(name="filled", title="a topic with records", tool=tools.PRODUCER_PERFORMANCE, records=1_000)
JOIN = Load(
    name="group-join",
    title="join of a group to first record",
    tool=tools.JOIN,
    records=20,
    filled_by=FILLED,
    needs=GROUP,
    figures=LATENCY,
)
# A later member waits for its own heartbeat and the first member's: three seconds in one protocol, five in the other.
JOIN_THREE = JOIN._replace(
    name="group-of-three",
    title="join of three consumers, until each has a record",
    records=2,
    clients=3,
    partitions=3,
    filled_by=FILLED._replace(tool=tools.PRODUCE, clients=3, partitions=3),
)
HEARTBEATS = Load(
    name="group-heartbeats",
    title="heartbeats of 100 members",
    tool=tools.HEARTBEATS,
    records=60_000,
    clients=100,
    needs=GROUP,
    figures=(*RATE_AND_LATENCY, "rss_peak_mb"),
)
GROUPS = (
    JOIN,
    JOIN._replace(
        name="group-join-consumer",
        title="join of a group to first record, KIP-848",
        client=KIP_848,
        needs=CONSUMER_GROUP,
    ),
    JOIN_THREE,
    JOIN_THREE._replace(
        name="group-of-three-consumer",
        title="join of three consumers, until each has a record, KIP-848",
        records=1,
        client=KIP_848,
        needs=CONSUMER_GROUP,
    ),
    Load(
        name="offset-commits",
        title="offset commits, one by one",
        tool=tools.COMMIT,
        records=3_000,
        needs=COMMIT,
        figures=RATE_AND_LATENCY,
    ),
    HEARTBEATS,
    HEARTBEATS._replace(
        name="group-commits", title="offset commits of 100 members", tool=tools.COMMITS, records=30_000
    ),
    HEARTBEATS._replace(
        name="group-many",
        title="offsets of 10,000 groups",
        tool=tools.GROUPS,
        records=10_000,
        figures=("cpu_s_per_million", "records_per_s", "rss_peak_mb", "kb_each"),
    ),
    HEARTBEATS._replace(
        name="group-join-1000",
        title="1,000 members into one generation",
        tool=tools.JOIN_MANY,
        records=1_000,
        clients=1_000,
        figures=RATE,
    ),
)

TRANSACTION_MS = (10, 100, 1_000)
WORD_COUNT = Load(
    name="streams-word-count",
    title="word count by Kafka Streams, exactly once, committed every 100 ms",
    tool=tools.WORD_COUNT,
    records=20_000,
    partitions=4,
    filled_by=Load(
        name="lines",
        title="lines",
        tool=tools.PRODUCER_PERFORMANCE,
        records=20_000,
        record_bytes=100,
        payload=Payload.LOG_LINES,
    ),
    needs=TRANSACTION | GROUP,
    warm_up_at_most=10,  # each round starts a JVM and a group
    figures=("cpu_s_per_million", "records_per_s", "rss_peak_mb", "private_mb"),
)
"""Its records are lines. The application writes three records for each word of a line."""

COMMITS = Load(
    name="transactions-1",
    title="transactions of a record",
    tool=tools.COMMIT_TRANSACTIONS,
    records=600,
    record_bytes=100,
    needs=TRANSACTION,
    figures=RATE_AND_LATENCY,
)
HALF_ABORTED = Load(
    name="half-aborted",
    title="as many records aborted as committed",
    tool=tools.HALF_ABORTED,
    records=100_000,
    needs=TRANSACTION,
)
TRANSACTIONS = (
    *(
        Load(
            name=f"transactions-{duration_ms}ms",
            title=f"produce 1 KB, transactions of {duration_ms:,} ms",
            tool=tools.transactional(duration_ms),
            records=300_000,
            needs=TRANSACTION,
            figures=("cpu_s_per_gb", "records_per_s", "mb_per_s", "rss_peak_mb", "private_mb"),
        )
        for duration_ms in TRANSACTION_MS
    ),
    WORD_COUNT,
    COMMITS,
    COMMITS._replace(
        name="transactions-10", title="transactions of a record in 10 partitions", records=200, partitions=10
    ),
    COMMITS._replace(
        name="transactions-100", title="transactions of a record in 100 partitions", records=40, partitions=100
    ),
    COMMITS._replace(
        name="transactions-latency", title="end to end, records committed one by one", tool=tools.COMMITTED_LATENCY
    ),
    Load(
        name="transactions-consume",
        title="consume 1 KB, read_committed, half of them aborted",
        tool=tools.CONSUME,
        records=100_000,
        client=("isolation.level=read_committed",),
        filled_by=HALF_ABORTED,
        needs=TRANSACTION,
    ),
)
