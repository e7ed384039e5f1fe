"""replay: writes the records of a store or of tables back into topics, in order per partition.

At full speed or at the recorded pace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.iceberg.load import TablePlace
from pipeline.iceberg.rows import Tables
from pipeline.manifest import StoreState
from pipeline.producing import Writer
from pipeline.sending import SendTarget, outgoing, send
from pipeline.source import SPARK_FAILURES, explained, read_files
from pipeline.store import Store
from pipeline.topics import PartitionName


@dataclass(frozen=True, slots=True)
class ReplayConfig:
    """The options of a replay: store or tables, and target. `pace` is a multiple of the recorded speed; None is as fast
    as the broker accepts records.
    """

    bootstrap: str
    store: str | None
    topics: tuple[str, ...]
    tables: TablePlace | None = None
    to: str | None = None
    pace: float | None = None
    append: bool = False
    from_ms: int | None = None
    until_ms: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def replay(
    spark: SparkSession, config: ReplayConfig, sleep: Callable[[float], None] = time.sleep
) -> dict[PartitionName, int]:
    """Returns the number of records written, by source partition.

    Raises PipelineError; if a target is not empty, before anything is written.
    """
    tables = None if config.tables is None else Tables(spark, config.tables, config.topics)
    state = Store(config.store or "").reading() if tables is None else tables.state
    names = _names(config, state)
    target = SendTarget(config.bootstrap, names, config.properties)
    for topic, name in names.items():
        prepare(target.cluster(), name, max(state.partitions[topic]) + 1, config.append)
    keys = [PartitionName(topic, number) for topic in names for number in state.partitions[topic]]
    parts = (stored(spark, config.store or "", state, key) if tables is None else tables.part(key) for key in keys)
    frame = reduce(DataFrame.unionByName, (in_order(part, config) for part in parts))
    try:
        if config.pace is not None:
            return paced(frame, target, config.pace, sleep)
        return {PartitionName(result.topic, result.partition): result.records for result in send(frame, target)}
    except SPARK_FAILURES as error:
        raise explained(error, target.cluster(), []) from error


def _names(config: ReplayConfig, state: StoreState) -> dict[str, str]:
    if missing := ", ".join(topic for topic in config.topics if topic not in state.topics):
        place = config.store or (config.tables and config.tables.catalog.uri)
        raise PipelineError(f"{place} has no topic {missing}: it has {', '.join(sorted(state.topics))}")
    if config.to is not None and len(config.topics) != 1:
        raise PipelineError(f"--to-topic {config.to} is for one topic, not for {', '.join(config.topics)}")
    return {topic: config.to or topic for topic in config.topics}


def prepare(cluster: Cluster, name: str, partitions: int, append: bool) -> None:
    """Creates the target. If it exists, checks that it has enough partitions and, without `append`, no records."""
    if cluster.create(name, partitions):
        return
    (topic,) = cluster.topics([name])
    if len(topic.partitions) < partitions:
        raise PipelineError(f"{name} has {len(topic.partitions)} partitions, the store's records need {partitions}")
    first, end = cluster.start_offsets(topic.partition_keys()), cluster.end_offsets(topic.partition_keys())
    for key in topic.partition_keys():
        if first[key] < end[key] and not append:
            raise PipelineError(
                f"{key} has offsets {first[key]} to {end[key] - 1} already; --accept-records writes after them"
            )


def stored(spark: SparkSession, store: str, state: StoreState, key: PartitionName) -> DataFrame:
    """Returns one partition's records. They include quarantined records, because the store has their bytes."""
    return read_files(spark, Store(store).root, [file for file in state.files.values() if file.key == key])


def in_order(frame: DataFrame, config: ReplayConfig) -> DataFrame:
    """Returns one partition's records within the times of the replay, by offset, as one task."""
    if config.from_ms is not None:
        frame = frame.where(f.unix_millis("timestamp") >= config.from_ms)
    if config.until_ms is not None:
        frame = frame.where(f.unix_millis("timestamp") < config.until_ms)
    columns = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    return frame.select(*columns).coalesce(1).sortWithinPartitions("offset")


def paced(
    frame: DataFrame, target: SendTarget, factor: float, sleep: Callable[[float], None] = time.sleep
) -> dict[PartitionName, int]:
    """Writes from the driver at a multiple of the recorded pace.

    A late record does not delay its partition.
    """
    by_offset = Window.partitionBy("topic", "partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    ordered = (
        frame.withColumn("timestamp_ms", f.unix_millis("timestamp"))
        .withColumn("due_ms", f.max("timestamp_ms").over(by_offset))
        .orderBy("due_ms", "topic", "partition", "offset")
    )
    counts: dict[PartitionName, int] = {}
    with ExitStack() as open_writers:
        writers = {
            topic: open_writers.enter_context(Writer(target.bootstrap, name, target.properties))
            for topic, name in target.names.items()
        }
        began, first_due = time.monotonic(), None
        rows: Iterator[object] = ordered.toLocalIterator(prefetchPartitions=True)
        for row in rows:
            due_ms = row["due_ms"]  # type: ignore[index]
            first_due = due_ms if first_due is None else first_due
            if (early := began + (due_ms - first_due) / 1000 / factor - time.monotonic()) > 0:
                sleep(early)
            key = PartitionName(row["topic"], row["partition"])  # type: ignore[index]
            writers[key.topic].write(outgoing(row))  # type: ignore[arg-type]
            counts[key] = counts.get(key, 0) + 1
    return counts
