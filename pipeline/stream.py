"""stream: fills the store of `load`, or its tables, by Structured Streaming.

Each micro-batch is a run with the offsets in the checkpoint's offset log. If Spark repeats a batch after a crash, it is
found in the store's manifests and skipped. `load` and `stream` may alternate on one store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pipeline import analytics
from pipeline.cluster import Cluster
from pipeline.decode import Decoding, decoded
from pipeline.errors import PipelineError, Unreachable
from pipeline.iceberg.load import TablePlace
from pipeline.iceberg.rows import Tables
from pipeline.iceberg.stream import TableSink
from pipeline.load import SinkRun, run_id
from pipeline.manifest import StoreState
from pipeline.progress import BatchProgress, Trigger, TriggerKind, offsets_in, progress_of, ranges_between
from pipeline.ranges import AcceptedLosses, ClusterOffsets, Range, RangeBounds, check_topics, plan, to_json
from pipeline.source import SPARK_FAILURES, as_records, explained, kafka_options
from pipeline.store import Hook, Store, nowhere
from pipeline.topics import PartitionName, TopicDescription

POLL_S = 1
QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """The options of a stream: source, store or tables, and size of batches.

    `counts` is a directory for events per type and window, with a watermark.
    """

    bootstrap: str
    out: str | None
    topics: tuple[str, ...]
    tables: TablePlace | None = None
    trigger: Trigger = field(default_factory=Trigger)
    max_offsets: int = 200_000
    checkpoint: str | None = None
    accepted: AcceptedLosses = field(default_factory=AcceptedLosses)
    decoding: Decoding = field(default_factory=Decoding)
    counts: str | None = None
    watermark: str = "10 minutes"
    window: str = "10 minutes"
    to_topic: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def checkpoints(self) -> Path:
        if self.checkpoint is None and self.out is None:
            raise PipelineError("a stream into tables needs --checkpoint DIR")
        return Path(self.checkpoint or Path(self.out or "") / "_checkpoint").absolute()


Shown = Callable[[BatchProgress], None]


def stream(spark: SparkSession, config: StreamConfig, shown: Shown | None = None, at: Hook = nowhere) -> int:
    """Runs until the trigger ends, or until it is stopped; returns the number of records. Raises PipelineError."""
    if config.trigger.kind is TriggerKind.CONTINUOUS and config.to_topic is None:
        raise PipelineError(
            "Spark's continuous mode has no batches that a store could commit as a whole: use --to-topic, or "
            "--trigger 1s for a batch each second"
        )
    cluster = Cluster(config.bootstrap, config.properties)
    state = Store(config.out).state() if config.out is not None and config.to_topic is None else StoreState()
    try:
        topics = cluster.topics(config.topics)
        if config.tables is not None and config.to_topic is None:
            state = Tables(spark, config.tables, config.topics).state
        offsets = offsets_now(cluster, topics)
    except Unreachable as error:
        raise Unreachable(f"{error}. {state.describe_loaded(config.topics)}") from None
    ranges = plan(topics, offsets, state.loaded(), RangeBounds(), RangeBounds(), config.accepted)
    frame = as_records(_reader(spark, cluster, offsets, ranges, config))
    queries = [relay(frame, config) if config.to_topic is not None else sink(frame, cluster, config, at)]
    try:
        if config.counts is not None:
            queries.append(counts(frame, config, config.counts))
        return watch(queries, shown)
    except SPARK_FAILURES as error:
        raise explained(error, cluster, ranges) from error
    finally:
        for query in queries:
            query.stop()


def offsets_now(cluster: Cluster, topics: Sequence[TopicDescription]) -> ClusterOffsets:
    keys = [key for topic in topics for key in topic.partition_keys()]
    return ClusterOffsets(cluster.start_offsets(keys), cluster.end_offsets(keys), {}, {})


def _reader(
    spark: SparkSession, cluster: Cluster, offsets: ClusterOffsets, ranges: Sequence[Range], config: StreamConfig
) -> DataFrame:
    """Returns the records from the store's offsets on; if there is a checkpoint, Spark continues from that instead."""
    starting = {**offsets.end, **{span.key: span.start for span in ranges}}
    options = kafka_options(cluster, config.options) | {
        "subscribe": ",".join(config.topics),
        "startingOffsets": to_json(starting),
        "maxOffsetsPerTrigger": str(config.max_offsets),
        **({"failOnDataLoss": "false"} if config.accepted.lost else {}),
    }
    return spark.readStream.format("kafka").options(**options).load()


def sink(frame: DataFrame, cluster: Cluster, config: StreamConfig, at: Hook) -> StreamingQuery:
    """Returns the query that feeds the store."""
    batches = (
        Batches(cluster, config, at) if config.tables is None else TableBatches(cluster, config, config.tables, at)
    )
    writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", str(config.checkpoints / "store"))
    return triggered(writer, config.trigger).start()


def counts(frame: DataFrame, config: StreamConfig, out: str) -> StreamingQuery:
    """Counts events per type and window, once the watermark has passed the window. Later events are counted only as
    late.
    """
    events = analytics.parsed(frame).withWatermark("happened", config.watermark)
    once = events.dropDuplicatesWithinWatermark(["id"])
    writer = (
        analytics.by_type_unordered(once, config.window)
        .writeStream.format("parquet")
        .option("path", str(Path(out).absolute()))
        .option("checkpointLocation", str(config.checkpoints / "counts"))
    )
    return triggered(writer, config.trigger).start()


def relay(frame: DataFrame, config: StreamConfig) -> StreamingQuery:
    """Sends records to another topic by Spark's own sink: with little delay, at least once, with new timestamps.
    `mirror` keeps more.
    """
    writer = (
        frame.select("key", "value", "headers", "partition")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", config.bootstrap)
        .option("topic", config.to_topic or "")
        .option("includeHeaders", "true")
        .option("checkpointLocation", str(config.checkpoints / "relay"))
    )
    return triggered(writer, config.trigger).start()


def triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    if trigger.kind is TriggerKind.AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    if trigger.kind is TriggerKind.CONTINUOUS:
        return writer.trigger(continuous=trigger.interval)
    return writer.trigger(processingTime=trigger.interval)


def watch(queries: Sequence[StreamingQuery], shown: Shown | None = None) -> int:
    """Waits for the queries to end, reports each batch, and returns the first query's number of records."""
    total, seen = 0, {query.id: -1 for query in queries}
    while True:
        ended = [query.awaitTermination(POLL_S) for query in queries]
        for query in queries:
            for raw in query.recentProgress:
                progress = progress_of(json.loads(raw.json))
                if progress.batch <= seen[query.id]:
                    continue
                seen[query.id] = progress.batch
                total += progress.rows if query is queries[0] else 0
                if shown is not None:
                    shown(progress)
        if all(ended):
            return total


class Batches:
    """Processes each micro-batch as one run of the store."""

    def __init__(self, cluster: Cluster, config: StreamConfig, at: Hook) -> None:
        self._cluster, self._config, self._at = cluster, config, at

    def __call__(self, batch: DataFrame, number: int) -> None:
        spark, store = batch.sparkSession, Store(self._config.out or "")
        query = spark.sparkContext.getLocalProperty(QUERY_ID) or ""
        with store.writing() as state:
            if state.stream.get(query, -1) >= number:
                return
            topics = self._cluster.topics(self._config.topics)
            first = self._cluster.start_offsets([key for topic in topics for key in topic.partition_keys()])
            check_topics(topics, state.loaded(), self._config.accepted, ClusterOffsets(first, first, {}, {}))
            ranges = batch_ranges(self._config.checkpoints / "store", number, first)
            self._at("planned")
            SinkRun(spark, store, state, run_id(), topics, ranges, self._at, {query: number}).write(
                decoded(batch, self._config.decoding)
            )


class TableBatches:
    """Processes each micro-batch as one run of each topic's table."""

    def __init__(self, cluster: Cluster, config: StreamConfig, place: TablePlace, at: Hook) -> None:
        self._cluster, self._config = cluster, config
        self._sink = TableSink(cluster, place, config.decoding, config.accepted, at)

    def __call__(self, batch: DataFrame, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or ""
        topics = self._cluster.topics(self._config.topics)
        first = self._cluster.start_offsets([key for topic in topics for key in topic.partition_keys()])
        ranges = batch_ranges(self._config.checkpoints / "store", number, first)
        self._sink.write(batch, query, number, ranges)


def batch_ranges(checkpoint: Path, number: int, first: Mapping[PartitionName, int]) -> list[Range]:
    """Returns a micro-batch's offsets from Spark's write-ahead log; a new partition begins with its first offset."""
    ends = offsets_in((checkpoint / "offsets" / str(number)).read_text())
    before = (checkpoint / "offsets" / str(number - 1)) if number else (checkpoint / "sources" / "0" / "0")
    return ranges_between(offsets_in(before.read_text()), ends, first)
