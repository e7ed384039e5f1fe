"""audit: each offset of a topic is in its table exactly once, with the record that the topic has there; in SQL.

A record of the table that the topic no longer has is explained, or it is an error: retention deleted it (its offset is
before the partition's first), or compaction did (the topic is compacted, and a later record has the same key, or it is
a tombstone). Offsets without any record are those of transaction markers, aborted transactions and compaction.

A mirror is compared in the same way. Its own retention and compaction explain records that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.audit import AuditConfig, MirrorOf, digest, mirrored, whole
from pipeline.cluster import Cluster
from pipeline.errors import PipelineError, TopicChanged
from pipeline.iceberg.load import RECORD, TablePlace, dead_letters_of
from pipeline.iceberg.table import MAIN, Head, IcebergTable
from pipeline.manifest import StoreState
from pipeline.source import SPARK_FAILURES, explained, read_topics
from pipeline.topics import PartitionName, TopicDescription

LOADED: Final = "loaded"
MIRRORED: Final = "mirrored"

COMPARISON: Final = """
WITH there AS (
    SELECT partition, offset, count(*) AS times, min(digest) AS digest, max(digest) AS other,
           min(is_tombstone) AS is_tombstone, max(key) AS key
    FROM odradek_there GROUP BY partition, offset
),
keys AS (
    SELECT partition, key, max(offset) AS last, max(is_there) AS is_there
    FROM odradek_keys GROUP BY partition, key
),
compared AS (
    SELECT coalesce(p.partition, t.partition) AS partition, coalesce(p.offset, t.offset) AS offset,
           p.offset IS NOT NULL AS is_produced, coalesce(t.times, 0) AS times,
           t.digest <> p.digest OR t.other <> p.digest AS is_altered,
           coalesce(t.is_tombstone, p.is_tombstone) AS is_tombstone, coalesce(t.key, p.key) AS key
    FROM odradek_produced p FULL OUTER JOIN there t ON p.partition = t.partition AND p.offset = t.offset
),
explained AS (
    SELECT c.*, b.next, NOT is_produced AS is_gone, times = 0 AND c.offset < b.next AS is_absent,
           CASE WHEN is_produced THEN c.offset < b.since
                ELSE coalesce(c.offset < b.first, false) END AS is_expired,
           CASE WHEN c.offset IS NULL THEN false
                WHEN is_produced THEN b.stage_compacts AND (k.last > c.offset OR (is_tombstone AND NOT k.is_there))
                ELSE b.topic_compacts AND (coalesce(k.last > c.offset, false) OR is_tombstone) END AS is_compacted
    FROM compared c
    LEFT JOIN odradek_bounds b ON c.partition = b.partition
    LEFT JOIN keys k ON (NOT is_produced OR times = 0) AND k.partition = c.partition AND k.key = c.key
)
SELECT partition,
       count_if(is_produced) AS produced,
       sum(times) AS records,
       count_if(is_absent AND NOT is_expired AND NOT coalesce(is_compacted, false)) AS missing,
       count_if(times = 0 AND offset >= next) AS later,
       coalesce(sum(times - 1) FILTER (WHERE times > 1 AND offset IS NOT NULL), 0) AS doubled,
       count_if(is_produced AND times > 0 AND is_altered) AS altered,
       count_if((is_gone OR is_absent) AND is_expired) AS expired,
       count_if((is_gone OR is_absent) AND NOT is_expired AND is_compacted) AS compacted,
       coalesce(sum(CASE WHEN offset IS NULL THEN times ELSE 1 END)
                FILTER (WHERE is_gone AND NOT is_expired AND NOT coalesce(is_compacted, false)), 0) AS foreign
FROM explained GROUP BY partition ORDER BY partition
"""
"""The audit of one topic. `odradek_keys` is empty unless the topic or its mirror is compacted. Records of a mirror
that another producer wrote there have no offset, and each of them is foreign."""


BOUNDS: Final = "partition int, first bigint, next bigint, since bigint, topic_compacts boolean, stage_compacts boolean"


class AuditStage(NamedTuple):
    """The place that is compared with the topic: its table, or its mirror."""

    name: str
    records: DataFrame
    next_offsets: Mapping[PartitionName, int]
    """Offsets of the topic after the last one that the stage should have."""
    first_offsets: Mapping[PartitionName, int]
    """Offsets of the topic before which the stage's own retention explains what it lacks."""
    is_compacted: bool = False


class TableLine(NamedTuple):
    """The comparison of a partition with one stage. All fields but the first three are numbers of records."""

    topic: str
    partition: int
    stage: str
    produced: int
    records: int
    missing: int
    later: int
    doubled: int
    altered: int
    expired: int
    compacted: int
    foreign: int
    empty: int
    """Offsets of the topic without a record: transaction markers, aborted transactions, compaction."""

    @property
    def clean(self) -> bool:
        return not (self.missing or self.doubled or self.altered or self.foreign)


@dataclass(frozen=True, slots=True)
class TableAudit:
    """The lines of all topics, partitions and stages. Records that are not loaded yet are errors unless accepted."""

    lines: tuple[TableLine, ...]
    only_loaded: bool = False

    @property
    def clean(self) -> bool:
        return all(line.clean and (self.only_loaded or not line.later) for line in self.lines)


def audit_tables(spark: SparkSession, config: AuditConfig, place: TablePlace, *, publish: bool = False) -> TableAudit:
    """Compares topics with their tables, and with their mirror if there is one. Raises PipelineError.

    With `publish`, main is moved to the audited branch of a table if nothing is wrong there.
    """
    if publish and place.branch == MAIN:
        raise PipelineError("--publish needs --branch, the branch that is audited and published")
    cluster = Cluster(config.bootstrap, config.properties)
    lines: list[TableLine] = []
    for topic in cluster.topics(config.topics, config.pattern):
        table = place.table(spark, topic.name)
        head = table.head()
        found = TopicAudit(spark, config, cluster, topic, table).lines()
        lines += found
        if publish and TableAudit(tuple(found), config.only_loaded).clean:
            published(table, head)
    return TableAudit(tuple(lines), config.only_loaded)


def published(table: IcebergTable, audited: Head) -> None:
    """Moves main to a branch that was audited. Raises PipelineError if the branch or main has changed."""
    main = replace(table, branch=MAIN)
    try:
        with table.catalog.exclusive(table.name):
            main.publish(table.branch, main.head(), audited.state.run, audited.snapshot)
    except IllegalArgumentException as error:
        if "fast-forward" not in str(error):
            raise
        raise PipelineError(
            f"{table.name}: main has changed since the branch {table.branch} began; drop the branch, and load again"
        ) from None


@dataclass(frozen=True, slots=True)
class TopicAudit:
    """The audit of a topic: its table, and its mirror."""

    spark: SparkSession
    config: AuditConfig
    cluster: Cluster
    topic: TopicDescription
    table: IcebergTable

    def lines(self) -> list[TableLine]:
        if self.table.branch != MAIN and not self.table.has(self.table.branch):
            raise PipelineError(f"{self.table.name} has no branch {self.table.branch}: load into it first")
        state = self.table.head().state
        if (loaded := state.topics.get(self.topic.name)) != self.topic.id:
            raise TopicChanged(
                f"{self.table.name} has {loaded or 'no loaded topic'}, but {self.topic.name} has the id {self.topic.id}"
            )
        rows = self.rows()  # before the offsets: a record that is loaded meanwhile is not unknown to the topic
        keys = self.topic.partition_keys()
        first, end = self.cluster.start_offsets(keys), self.cluster.end_offsets(keys)
        ranges = whole(keys, self.cluster)
        produced = read_topics(self.spark, self.cluster, ranges, self.config.options)
        table = AuditStage(LOADED, rows, {key: state.next_offset(key) for key in keys}, dict.fromkeys(keys, 0))
        try:
            lines = self.compared(table, self.expected(produced, state), first, end)
            if self.config.mirror is not None:
                mirror = self.mirror(self.config.mirror, first, end)
                lines += self.compared(mirror, produced, first, end)
        except SPARK_FAILURES as error:
            raise explained(error, self.cluster, ranges) from error
        return lines

    def mirror(self, of: MirrorOf, first: Mapping[PartitionName, int], end: Mapping[PartitionName, int]) -> AuditStage:
        """Returns the topic's mirror."""
        records = mirrored(self.spark, self.config, [self.topic], first)
        cluster, name = Cluster(of.bootstrap, self.config.properties), of.prefix + self.topic.name
        starts = cluster.start_offsets([key._replace(topic=name) for key in first])
        since = dict.fromkeys(first, 0)
        if any(starts.values()):
            for partition, offset in records.groupBy("partition").agg(f.min("offset")).collect():
                if starts.get(PartitionName(name, partition)):
                    since[PartitionName(self.topic.name, partition)] = offset or 0
        return AuditStage(MIRRORED, records, end, since, compacts(cluster, name))

    def rows(self) -> DataFrame:
        """Returns the table's records, with the dead letters."""
        rows = self.table.frame().select(*RECORD)
        dead = dead_letters_of(self.table)
        return rows.unionByName(dead.frame().select(*RECORD)) if dead.exists() else rows

    def expected(self, produced: DataFrame, state: StoreState) -> DataFrame:
        """Returns the records that the table should have: all, or of those that are loaded the last of each key."""
        if not self.table.is_upsert:
            return produced
        bounds = [(key.partition, state.next_offset(key)) for key in self.topic.partition_keys()]
        reached = self.spark.createDataFrame(bounds, "partition int, next bigint")
        dead = dead_letters_of(self.table)
        letters = (dead.frame() if dead.exists() else self.table.frame().limit(0)).select("partition", "offset")
        produced = produced.join(f.broadcast(reached), "partition")
        kept = (f.col("offset") >= f.col("next")) | f.col("is_dead")
        known = produced.join(letters.withColumn("is_dead", f.lit(True)), ["partition", "offset"], "left")
        known = known.withColumn("is_dead", f.coalesce("is_dead", f.lit(False)))
        latest = known.where(~kept).groupBy("partition", "key").agg(f.max_by(f.struct("*"), "offset").alias("row"))
        last = latest.select("row.*").where(f.col("value").isNotNull())
        return known.where(kept).unionByName(last).select(*RECORD)

    def compared(
        self,
        stage: AuditStage,
        wanted: DataFrame,
        first: Mapping[PartitionName, int],
        end: Mapping[PartitionName, int],
    ) -> list[TableLine]:
        """Returns a line for each partition."""
        _hashed(wanted).createOrReplaceTempView("odradek_produced")
        _hashed(stage.records).createOrReplaceTempView("odradek_there")
        is_compacted = compacts(self.cluster, self.topic.name)
        there = stage.records.select("partition", "key", "offset", f.lit(True).alias("is_there"))
        keys = there.union(wanted.select("partition", "key", "offset", f.lit(False)))
        keys.where(f.lit(is_compacted or stage.is_compacted)).createOrReplaceTempView("odradek_keys")
        bounds = [
            (
                key.partition,
                first[key],
                stage.next_offsets[key],
                stage.first_offsets[key],
                is_compacted,
                stage.is_compacted,
            )
            for key in first
        ]
        self.spark.createDataFrame(bounds, BOUNDS).createOrReplaceTempView("odradek_bounds")
        rows = {row["partition"]: row for row in self.spark.sql(COMPARISON).collect()}
        lines = []
        for key in self.topic.partition_keys():
            counts = (
                [int(rows[key.partition][name] or 0) for name in TableLine._fields[3:-1]]
                if key.partition in rows
                else [0] * 9
            )
            line = TableLine._make([key.topic, key.partition, stage.name, *counts, 0])
            lines.append(line._replace(empty=end[key] - first[key] - line.produced))
        if unknown := sorted(set(rows) - {key.partition for key in first}):
            raise PipelineError(f"{self.table.name} has partitions that {self.topic.name} doesn't have: {unknown}")
        return lines


def compacts(cluster: Cluster, topic: str) -> bool:
    """True if a topic is compacted."""
    return "compact" in cluster.configs(topic).get("cleanup.policy", "")


def _hashed(frame: DataFrame) -> DataFrame:
    return frame.select(
        "partition", "offset", "key", f.col("value").isNull().alias("is_tombstone"), digest().alias("digest")
    )
