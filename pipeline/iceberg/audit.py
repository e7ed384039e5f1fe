"""audit: each offset of a topic is in its table exactly once, with the record that the topic has there; in SQL.

A record of the table that the topic no longer has is explained, or it is an error: retention deleted it (its offset is
before the partition's first), or compaction did (the topic is compacted, and a later record has the same key, or it is
a tombstone). Offsets without any record are those of transaction markers, aborted transactions and compaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.audit import AuditConfig, digest, mirrored, whole
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
WITH produced AS (SELECT partition, offset, digest FROM odradek_produced),
there AS (
    SELECT partition, offset, count(*) AS times, min(digest) AS digest, max(digest) AS other,
           min(is_tombstone) AS is_tombstone, max(key) AS key
    FROM odradek_there GROUP BY partition, offset
),
later AS (SELECT partition, key, max(offset) AS last FROM odradek_keys GROUP BY partition, key),
bounds AS (SELECT partition, first, next FROM odradek_bounds),
compared AS (
    SELECT coalesce(p.partition, t.partition) AS partition, coalesce(p.offset, t.offset) AS offset,
           p.offset IS NOT NULL AS is_produced, coalesce(t.times, 0) AS times,
           t.digest <> p.digest OR t.other <> p.digest AS is_altered, t.is_tombstone, t.key
    FROM produced p FULL OUTER JOIN there t ON p.partition = t.partition AND p.offset = t.offset
)
SELECT c.partition,
       count_if(is_produced) AS produced,
       sum(times) AS records,
       count_if(is_produced AND times = 0 AND c.offset < b.next) AS missing,
       count_if(is_produced AND times = 0 AND c.offset >= b.next) AS later,
       coalesce(sum(times - 1) FILTER (WHERE times > 1), 0) AS doubled,
       count_if(is_produced AND times > 0 AND is_altered) AS altered,
       count_if(NOT is_produced AND c.offset < b.first) AS expired,
       count_if(NOT is_produced AND c.offset >= b.first AND (l.last > c.offset OR is_tombstone)) AS compacted,
       count_if(NOT is_produced AND c.offset >= b.first
                AND NOT (coalesce(l.last > c.offset, false) OR is_tombstone)) AS foreign
FROM compared c
LEFT JOIN bounds b ON c.partition = b.partition
LEFT JOIN later l ON NOT is_produced AND l.partition = c.partition AND l.key = c.key
GROUP BY c.partition ORDER BY c.partition
"""
"""The audit of one topic. `odradek_keys` is empty unless the topic is compacted."""


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
        empty = StoreState()
        try:
            lines = self.compared(LOADED, produced, rows, state, first, end)
            if self.config.mirror is not None:
                mirror = mirrored(self.spark, self.config, [self.topic], first)
                lines += self.compared(MIRRORED, produced, mirror, empty, first, end)
        except SPARK_FAILURES as error:
            raise explained(error, self.cluster, ranges) from error
        return lines

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
        stage: str,
        produced: DataFrame,
        there: DataFrame,
        state: StoreState,
        first: dict[PartitionName, int],
        end: dict[PartitionName, int],
    ) -> list[TableLine]:
        """Returns a line for each partition."""
        wanted = self.expected(produced, state) if stage == LOADED else produced
        _hashed(wanted).createOrReplaceTempView("odradek_produced")
        _hashed(there).createOrReplaceTempView("odradek_there")
        compacted = "compact" in self.cluster.configs(self.topic.name).get("cleanup.policy", "")
        keys = there.select("partition", "key", "offset").union(produced.select("partition", "key", "offset"))
        keys.where(f.lit(compacted)).createOrReplaceTempView("odradek_keys")
        bounds = [
            (key.partition, first[key], end[key] if stage == MIRRORED else state.next_offset(key)) for key in first
        ]
        schema = "partition int, first bigint, next bigint"
        self.spark.createDataFrame(bounds, schema).createOrReplaceTempView("odradek_bounds")
        rows = {row["partition"]: row for row in self.spark.sql(COMPARISON).collect()}
        lines = []
        for key in self.topic.partition_keys():
            counts = (
                [int(rows[key.partition][name] or 0) for name in TableLine._fields[3:-1]]
                if key.partition in rows
                else [0] * 9
            )
            line = TableLine._make([key.topic, key.partition, stage, *counts, 0])
            if not compacted:  # then nothing but compaction explains a record that the topic doesn't have
                line = line._replace(foreign=line.foreign + line.compacted, compacted=0)
            lines.append(line._replace(empty=end[key] - first[key] - line.produced))
        if unknown := sorted(set(rows) - {key.partition for key in first}):
            raise PipelineError(f"{self.table.name} has partitions that {self.topic.name} doesn't have: {unknown}")
        return lines


def _hashed(frame: DataFrame) -> DataFrame:
    return frame.select(
        "partition", "offset", "key", f.col("value").isNull().alias("is_tombstone"), digest().alias("digest")
    )
