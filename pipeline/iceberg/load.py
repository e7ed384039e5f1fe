"""load: ranges of a topic into an Iceberg table, exactly once, also if several loads run at the same time.

A run decides its ranges from the summary of the table's last snapshot, writes their records to a branch of its own,
checks them there, and publishes the branch. If another run was faster, it decides again. Values that can't be decoded
go into a table of dead letters, which is loaded by the same rules, and published before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.decode import DATA, REASON, Decoding, decoded, settled
from pipeline.errors import PipelineError, Unreachable
from pipeline.iceberg.catalog import Catalog
from pipeline.iceberg.schema import columns, fitted
from pipeline.iceberg.summary import summary_of
from pipeline.iceberg.table import MAIN, Head, IcebergTable, Overtaken
from pipeline.load import LoadConfig, LoadOutcome, offsets_of, run_id
from pipeline.manifest import Manifest, StoreState, applied
from pipeline.ranges import Range, plan
from pipeline.source import SPARK_FAILURES, explained, read_topics
from pipeline.store import Hook, nowhere
from pipeline.topics import TopicDescription

NAMESPACE: Final = "kafka"
DEAD_LETTERS: Final = "_dead_letters"
RUNS: Final = 20
"""Number of times that a load begins again because another load was faster."""
BY_DAY: Final = "days(timestamp)"
NO_KEY: Final = "no key, but the table has one row for each key"
BRANCH_PREFIX: Final = "odradek-run-"
UPSERT_SQL: Final = """
MERGE INTO {target} there USING odradek_latest new ON there.partition = new.partition AND there.key = new.key
WHEN MATCHED AND new.value IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED AND new.value IS NOT NULL THEN INSERT *
"""
RECORD: Final = ("partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where a topic's table is: `name` is NAMESPACE.TABLE, and `partition_by` has Iceberg's transforms.

    With `upsert`, a new table has the last record of each key.
    """

    catalog: Catalog
    name: str | None = None
    partition_by: str | None = None
    branch: str = MAIN
    upsert: bool = False

    def create(self, table: IcebergTable) -> None:
        """Creates a table, unless it exists. Raises PipelineError if an existing table has other rows."""
        default = "" if self.upsert else BY_DAY  # a key's next record may be of another day
        table.create(default if self.partition_by is None else self.partition_by, upsert=self.upsert)
        if self.upsert and not table.is_upsert:
            raise PipelineError(f"{table.name} has all records of its topic; --upsert is for a new --table")

    def table(self, spark: SparkSession, topic: str) -> IcebergTable:
        """Returns the topic's table. Raises PipelineError for a name without a namespace."""
        name = self.name or f"{NAMESPACE}.{topic.replace('.', '_')}"
        if name.count(".") != 1 or not all(name.split(".")):
            raise PipelineError(f"--table {name}: expected NAMESPACE.TABLE, such as {NAMESPACE}.{topic}")
        return IcebergTable(spark, self.catalog, name, self.branch)


def load_tables(
    spark: SparkSession, config: LoadConfig, place: TablePlace, at: Hook = nowhere
) -> dict[str, LoadOutcome]:
    """Loads each topic into its table once; returns the outcomes by table. Raises PipelineError."""
    cluster = Cluster(config.bootstrap, config.properties)
    topics = cluster.topics(config.topics, config.pattern)
    if place.name is not None and len(topics) > 1:
        raise PipelineError(f"--table {place.name} is for one topic, not for {', '.join(t.name for t in topics)}")
    tables = {topic: place.table(spark, topic.name) for topic in topics}
    if len({table.name for table in tables.values()}) < len(tables):
        raise PipelineError(f"several topics have the same table name: {', '.join(t.name for t in topics)}")
    return {table.name: load_topic(spark, config, place, topic, at) for topic, table in tables.items()}


def load_topic(
    spark: SparkSession, config: LoadConfig, place: TablePlace, topic: TopicDescription, at: Hook = nowhere
) -> LoadOutcome:
    """Loads a topic into its table once. Raises PipelineError; then nothing is published."""
    cluster = Cluster(config.bootstrap, config.properties)
    table = place.table(spark, topic.name)
    with place.catalog.exclusive(table.name):
        place.create(table)
        for _ in range(RUNS):
            head = table.head()
            try:
                offsets = offsets_of(cluster, [topic], config)
            except Unreachable as error:
                raise Unreachable(f"{error}. {head.state.describe_loaded([topic.name])}") from None
            check_topic(table, head.state, topic)
            ranges = plan([topic], offsets, head.state.loaded(), config.starting, config.ending, config.accepted)
            at("planned")
            if not ranges:
                return LoadOutcome(run_id(), [], 0, 0, 0)
            run = TableRun(table, head, run_id(), topic, ranges, at)
            try:
                return run.write(read_topics(spark, cluster, ranges, config.options), config.decoding)
            except Overtaken:
                at("overtaken")
            except SPARK_FAILURES as error:
                raise explained(error, cluster, ranges) from error
    raise PipelineError(f"{table.name}: other loads of {topic.name} were faster {RUNS} times; run it again")


def dead_letters_of(table: IcebergTable) -> IcebergTable:
    """Returns the table of a table's dead letters."""
    return replace(table, name=f"{table.name}{DEAD_LETTERS}", branch=MAIN)


def decoded_for(table: IcebergTable, records: DataFrame, decoding: Decoding) -> DataFrame:
    """Returns the records with `data` and `reason` if values are decoded, or if the table can't have some of them."""
    there = next((column.dataType for column in columns(table) if column.name == DATA), None)
    records = decoded(records, settled(records, decoding, there))
    if not table.is_upsert:
        return records
    keyless = f.when(f.col("key").isNull(), f.lit(NO_KEY))
    return records.withColumn(REASON, f.coalesce(REASON, keyless) if REASON in records.columns else keyless)


def check_topic(table: IcebergTable, state: StoreState, topic: TopicDescription) -> None:
    """Raises PipelineError if the table has another topic."""
    if others := set(state.topics) - {topic.name}:
        raise PipelineError(f"{table.name} has the topic {', '.join(others)}; load {topic.name} into another --table")


@dataclass(frozen=True, slots=True)
class TableRun:
    """A run of a load, from records to a published snapshot. A stream makes one for each of its batches."""

    table: IcebergTable
    head: Head
    run: str
    topic: TopicDescription
    ranges: Sequence[Range]
    at: Hook = nowhere
    stream: Mapping[str, int] = field(default_factory=dict)

    @property
    def branch(self) -> str:
        return f"{BRANCH_PREFIX}{self.run}"

    def write(self, records: DataFrame, decoding: Decoding) -> LoadOutcome:
        """Decodes, stages, checks, publishes. Raises Overtaken, PipelineError; Spark's exceptions pass through."""
        records = decoded_for(self.table, records, decoding)
        letters = None
        if REASON in records.columns:
            letters = records.where(f.col(REASON).isNotNull()).select(*RECORD, REASON, f.lit(self.run).alias("run"))
            records = records.where(f.col(REASON).isNull())
        return self.append(records.select(*RECORD, *([DATA] if DATA in records.columns else [])), letters)

    def _dead_letters(self) -> TableRun:
        """Returns the same run, for the table of dead letters."""
        table = dead_letters_of(self.table)
        table.create("")
        return replace(self, table=table, head=table.head(), at=nowhere)

    def append(self, records: DataFrame, letters: DataFrame | None = None) -> LoadOutcome:
        """Publishes the records as one commit of the table, instead of earlier records of these ranges.

        Dead letters are published in their table when nothing but the publication of the records is left to do.
        """
        upsert = self.table.is_upsert
        if upsert:
            self._check_order()
        self.table.stage(self.branch, self.head)
        try:
            self._remove_loaded()
            self._write(fitted(self.table, records), upsert=upsert)
            self.at("staged")
            count = self._checked()
            self.at("counted")
            quarantined = 0 if letters is None else self._dead_letters().append(letters).records
            self._publish()
        except BaseException:
            self.table.drop(self.branch)
            raise
        self.at("committed")
        return LoadOutcome(self.run, self.ranges, count, quarantined, 0)

    def _write(self, records: DataFrame, *, upsert: bool) -> None:
        """Writes the records to the run's branch, with the summary in its last snapshot."""
        target = self.table.on(self.branch)
        if upsert:
            latest = records.groupBy("partition", "key").agg(f.max_by(f.struct("*"), "offset").alias("row"))
            latest.select("row.*").createOrReplaceTempView("odradek_latest")
            self.table.spark.sql(UPSERT_SQL.format(target=target))
            self.table.mark(self.branch, self.summary())
        else:
            options = {f"snapshot-property.{name}": value for name, value in self.summary().items()}
            records.writeTo(target).options(**options, **{"check-ordering": "false"}).append()

    def _check_order(self) -> None:
        """Raises PipelineError if an older record would replace a later record of its key, or a deletion."""
        for span in self.ranges:
            reached = self.head.state.next_offset(span.key)
            if span.start < reached and not self._recreated():
                raise PipelineError(
                    f"{self.table.name} has the last record of each key up to {span.key} offset {reached - 1}, so "
                    f"{span} can't be loaded after them. Load all offsets into another --table"
                )

    def summary(self) -> dict[str, str]:
        return summary_of(self.run, self.ranges, applied(self.head.state, self._manifest()))

    def _recreated(self) -> bool:
        return self.head.state.topics.get(self.topic.name, self.topic.id) != self.topic.id

    def _manifest(self) -> Manifest:
        return Manifest(
            sequence=self.head.state.sequence + 1,
            run=self.run,
            committed_ms=int(time.time() * 1000),
            topics={self.topic.name: self.topic.id},
            partitions={self.topic.name: self.topic.partitions},
            ranges=self.ranges,
            added=(),
            dropped=[self.topic.name] if self._recreated() else [],
            stream=self.stream,
        )

    def _remove_loaded(self) -> None:
        """Deletes what earlier runs loaded of these ranges, and all of a topic that was created again."""
        overlapping = [
            span
            for span in self.ranges
            if any(start < span.end and end > span.start for start, end in self.head.state.covered.get(span.key, ()))
        ]
        if self._recreated():
            self.table.spark.sql(f"DELETE FROM {self.table.on(self.branch)} WHERE true")
        elif overlapping:
            self.table.spark.sql(f"DELETE FROM {self.table.on(self.branch)} WHERE {condition(overlapping)}")

    def _checked(self) -> int:
        """Returns the number of the run's records on its branch. Raises PipelineError if an offset is there twice."""
        rows = (
            self.table.spark.table(self.table.on(self.branch))
            .where(condition(self.ranges))
            .groupBy("partition")
            .agg(f.count("*"), f.count_distinct("offset"))
            .collect()
        )
        for partition, records, distinct in rows:
            if records != distinct:
                raise PipelineError(f"{self.topic.name}-{partition}: {records - distinct} offsets were read twice")
        return sum(records for _, records, _ in rows)

    def _publish(self) -> None:
        """Publishes the branch; again on the new head, if only other programs have changed the table."""
        head = self.head
        for _ in range(RUNS):
            try:
                self.table.publish(self.branch, head, self.run)
                return
            except Overtaken:
                head = self.table.head()
                if head.state != self.head.state or self._replaces() or self.table.is_upsert:
                    raise
                self.table.rebase(self.branch, head, self.summary())
        raise Overtaken(f"{self.table.name}: it changed {RUNS} times")

    def _replaces(self) -> bool:
        return self._recreated() or any(
            start < span.end and end > span.start
            for span in self.ranges
            for start, end in self.head.state.covered.get(span.key, ())
        )


def condition(ranges: Sequence[Range]) -> str:
    """Returns the SQL of a predicate that is true for the rows of these ranges."""
    return " OR ".join(
        f"(partition = {span.partition} AND offset >= {span.start} AND offset < {span.end})" for span in ranges
    )
