"""load: ranges of topics into a store of Parquet files, exactly once, repeatable.

A run decides its ranges, stages their records, checks and counts the staged records, and commits all of them or none.
Loading a range again replaces its records; records outside the range that are in the same files are kept.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.decode import DATA, REASON, Decoding, decoded
from pipeline.errors import PipelineError, Unreachable
from pipeline.manifest import File, Manifest, Overlap, StoreState, overlap
from pipeline.ranges import AcceptedLosses, ClusterOffsets, Range, RangeBounds, plan
from pipeline.source import COLUMNS, SPARK_FAILURES, explained, read_files, read_topics, with_folders
from pipeline.store import QUARANTINE, Hook, Store, nowhere
from pipeline.topics import TopicDescription

STAGED = "partition int, offset bigint, kind string, topic string, date string, hour string"
"""The schema of staged files. It is given explicitly because a run stages no files if its ranges have only transaction
markers.
"""


@dataclass(frozen=True, slots=True)
class LoadConfig:
    """The options of a load: topics, source and store. `options` are the connector's."""

    bootstrap: str
    out: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    starting: RangeBounds = field(default_factory=RangeBounds)
    ending: RangeBounds = field(default_factory=RangeBounds)
    accepted: AcceptedLosses = field(default_factory=AcceptedLosses)
    decoding: Decoding = field(default_factory=Decoding)
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    """The result of a run."""

    run: str
    ranges: Sequence[Range]
    records: int
    quarantined: int
    replaced_files: int


def load(spark: SparkSession, config: LoadConfig, at: Hook = nowhere) -> LoadOutcome:
    """Runs the load once. Raises PipelineError; then nothing is committed."""
    cluster = Cluster(config.bootstrap, config.properties)
    with Store(config.out).writing() as state:
        try:
            topics = cluster.topics(config.topics, config.pattern)
            offsets = offsets_of(cluster, topics, config)
        except Unreachable as error:
            raise Unreachable(f"{error}. {state.describe_loaded(config.topics)}") from None
        ranges = plan(topics, offsets, state.loaded(), config.starting, config.ending, config.accepted)
        at("planned")
        if not ranges:
            return LoadOutcome(run_id(), [], 0, 0, 0)
        records = read_topics(spark, cluster, ranges, config.options)
        job = SinkRun(spark, Store(config.out), state, run_id(), topics, ranges, at)
        try:
            return job.write(decoded(records, config.decoding))
        except SPARK_FAILURES as error:
            raise explained(error, cluster, ranges) from error


def run_id() -> str:
    """Returns a name that sorts by time, with a random part for runs that begin in the same second."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"


def offsets_of(cluster: Cluster, topics: Sequence[TopicDescription], config: LoadConfig) -> ClusterOffsets:
    keys = [key for topic in topics for key in topic.partition_keys()]
    starting, ending = config.starting.at_ms, config.ending.at_ms
    return ClusterOffsets(
        cluster.start_offsets(keys),
        cluster.end_offsets(keys),
        {} if starting is None else cluster.offsets_at(keys, starting),
        {} if ending is None else cluster.offsets_at(keys, ending),
    )


@dataclass(frozen=True, slots=True)
class SinkRun:
    """A run of a sink, from records to a commit. A stream makes one for each of its batches."""

    spark: SparkSession
    store: Store
    state: StoreState
    run: str
    topics: Sequence[TopicDescription]
    ranges: Sequence[Range]
    at: Hook = nowhere
    stream: Mapping[str, int] = field(default_factory=dict)

    def write(self, records: DataFrame) -> LoadOutcome:
        """Stages, checks, commits. Raises PipelineError; Spark's exceptions pass through."""
        replaced = self._replaced()
        staging = self.store.staging(self.run)
        frame = self._with_retained(records, replaced.partly)
        kind = (
            f.lit("loaded") if REASON not in frame.columns else f.expr(f"if({REASON} is null, 'loaded', 'quarantine')")
        )
        (
            with_folders(frame)
            .withColumn("kind", kind)
            .sortWithinPartitions("kind", "topic", "date", "hour", "offset")
            .write.partitionBy("kind", "topic", "date", "hour")
            .parquet(str(staging))
        )
        self.at("staged")
        files = staged_files(self.spark, staging)
        self._check(files)
        self.at("counted")
        self.store.commit(self._manifest(files, replaced), self.at)
        new = [file for file in files if any(_within(file, span) for span in self.ranges)]
        return LoadOutcome(
            self.run,
            self.ranges,
            sum(file.records for file in new if not file.quarantined),
            sum(file.records for file in new if file.quarantined),
            len(replaced.within) + len(replaced.partly),
        )

    def _dropped(self) -> list[str]:
        """Returns the topics that were recreated: the store has another topic of the same name."""
        return [topic.name for topic in self.topics if self.state.topics.get(topic.name, topic.id) != topic.id]

    def _replaced(self) -> Overlap:
        dropped = set(self._dropped())
        return overlap((file for file in self.state.files.values() if file.topic not in dropped), self.ranges)

    def _with_retained(self, records: DataFrame, partly: Sequence[File]) -> DataFrame:
        """Returns the records, and the records of superseded files before and after the ranges, each in a task of their
        own.
        """
        new = {span.key: span for span in self.ranges}
        for file in partly:
            old = read_files(self.spark, self.store.root, [file])
            columns = [*COLUMNS, *(name for name in (DATA, REASON) if name in old.columns)]
            for outside in (f.col("offset") < new[file.key].start, f.col("offset") >= new[file.key].end):
                retained = old.where(outside).coalesce(1).select(*columns)
                records = records.unionByName(retained, allowMissingColumns=True)
        return records

    def _check(self, files: Sequence[File]) -> None:
        """Checks before the commit that the connector returned no record twice, and no record outside the ranges."""
        for span in self.ranges:
            mine = sorted((file.first, file.last) for file in files if file.key == span.key and _within(file, span))
            count = sum(file.records for file in files if file.key == span.key and _within(file, span))
            if count > span.end - span.start:
                raise PipelineError(
                    f"{span}: {count} records were read, but the range has at most {span.end - span.start}"
                )
            if mine and (mine[0][0] < span.start or mine[-1][1] >= span.end):
                raise PipelineError(f"{span}: records outside of it were read: {mine[0][0]} to {mine[-1][1]}")

    def _manifest(self, files: Sequence[File], replaced: Overlap) -> Manifest:
        return Manifest(
            sequence=self.state.sequence + 1,
            run=self.run,
            committed_ms=int(time.time() * 1000),
            topics={topic.name: topic.id for topic in self.topics},
            partitions={topic.name: topic.partitions for topic in self.topics},
            ranges=self.ranges,
            added=files,
            removed=[file.path for file in (*replaced.within, *replaced.partly)],
            dropped=self._dropped(),
            stream=self.stream,
        )


def _within(file: File, span: Range) -> bool:
    return file.key == span.key and file.first < span.end and file.last >= span.start


def staged_files(spark: SparkSession, staging: Path) -> list[File]:
    """Returns the files that a run wrote, with their topics, partitions and offsets. Raises PipelineError if an offset
    appears twice.
    """
    rows = (
        spark.read.schema(STAGED)
        .parquet(str(staging))
        .select("kind", "topic", "date", "hour", "partition", "offset", f.col("_metadata.file_name").alias("file"))
        .groupBy("kind", "topic", "date", "hour", "file", "partition")
        .agg(f.min("offset"), f.max("offset"), f.count("offset"), f.count_distinct("offset"))
        .collect()
    )
    files = []
    for kind, topic, date, hour, name, partition, first, last, records, distinct in rows:
        if records != distinct:
            raise PipelineError(
                f"{topic}-{partition}: {records - distinct} of offsets {first} to {last} were read twice"
            )
        quarantined = kind == "quarantine"
        path = f"topic={topic}/date={date}/hour={hour}/{name}"
        files.append(
            File(f"{QUARANTINE}/{path}" if quarantined else path, topic, partition, first, last, records, quarantined)
        )
    return sorted(files)
