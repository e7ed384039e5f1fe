"""audit: checks that the store and the mirror have each produced record exactly once and unchanged.

Counts and digests the records of each stage, by topic, partition and window of record timestamps. The digest also finds
differences between equal counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.completeness import Cell, Count, Line, compared
from pipeline.errors import PipelineError, TopicChanged
from pipeline.manifest import File, StoreState
from pipeline.ranges import Range
from pipeline.sending import OWN_HEADERS, SOURCE_OFFSET
from pipeline.source import SPARK_FAILURES, explained, read_files, read_topics
from pipeline.store import Store
from pipeline.topics import PartitionName, TopicDescription

LONGEST_NAME = 249
"""Maximum number of characters in a topic's name, as in Kafka."""


class MirrorOf(NamedTuple):
    """A cluster that mirrors the source, and the prefix of mirrored topics' names."""

    bootstrap: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """The options of an audit: topics, store and mirror. Unless `only_loaded`, records that were not loaded count as
    missing.
    """

    bootstrap: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    store: str | None = None
    mirror: MirrorOf | None = None
    window: str = "1 hour"
    only_loaded: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Audit:
    """The lines of all partitions and windows; `expired` is the number of records in the store that are no longer in
    the topic."""

    lines: Sequence[Line]
    expired: int

    @property
    def clean(self) -> bool:
        return all(line.clean for line in self.lines)


def audit(spark: SparkSession, config: AuditConfig) -> Audit:
    """Compares the stages. Raises PipelineError if a stage can't be read."""
    if config.store is None and config.mirror is None:
        raise PipelineError("nothing to compare the topics with: name a --store, a --mirror, or both")
    cluster = Cluster(config.bootstrap, config.properties)
    topics = cluster.topics(config.topics, config.pattern)
    state = Store(config.store).reading() if config.store is not None else StoreState()
    keys = [key for topic in topics for key in topic.partition_keys()]
    ranges = whole(keys, cluster)
    if config.only_loaded:
        ranges = loaded_of(ranges, state)
    try:
        produced = counted(read_topics(spark, cluster, ranges, config.options), config.window)
        stages: dict[str, dict[Cell, Count]] = {}
        expired = 0
        if config.store is not None:
            stored = read_files(spark, Store(config.store).root, _files(state, topics))
            expired = before(stored, cluster.start_offsets(keys))
            stages["loaded"] = counted(within(stored, keys, cluster.start_offsets(keys)), config.window)
        if config.mirror is not None:
            stages["mirrored"] = counted(mirrored(spark, config, topics, cluster.start_offsets(keys)), config.window)
    except SPARK_FAILURES as error:
        raise explained(error, cluster, ranges) from error
    return Audit(compared(produced, stages), expired)


def whole(keys: Iterable[PartitionName], cluster: Cluster) -> list[Range]:
    keys = list(keys)
    first, end = cluster.start_offsets(keys), cluster.end_offsets(keys)
    return [Range(*key, first[key], end[key]) for key in keys if first[key] < end[key]]


def loaded_of(ranges: Iterable[Range], state: StoreState) -> list[Range]:
    """Returns the parts of the ranges that are in the store."""
    parts = []
    for span in ranges:
        for start, end in state.covered.get(span.key, ()):
            if max(start, span.start) < min(end, span.end):
                parts.append(Range(*span.key, max(start, span.start), min(end, span.end)))
    by_key = {part.key: part for part in parts}
    if len(by_key) != len(parts):
        holed = next(part.key for part in parts if by_key[part.key] != part)
        raise PipelineError(f"{holed} was loaded in parts with gaps between them: audit it without --only-loaded")
    return parts


def _files(state: StoreState, topics: Sequence[TopicDescription]) -> list[File]:
    for topic in topics:
        if (loaded := state.topics.get(topic.name)) not in (None, topic.id):
            raise TopicChanged(f"{topic.name} was deleted and recreated: its id is {topic.id}, but {loaded} was loaded")
    return state.files_of([topic.name for topic in topics], quarantined=None)


def digest() -> Column:
    """Returns an eight-byte digest of a record without its offset and the headers that a mirror added."""
    own = f.filter("headers", lambda header: ~header["key"].startswith(OWN_HEADERS))
    headers = f.when(f.size(own) > 0, own)
    return f.xxhash64("key", "value", headers, "timestamp", f.col("key").isNull(), f.col("value").isNull())


def counted(frame: DataFrame, window: str) -> dict[Cell, Count]:
    """Returns, by topic, partition and window, the numbers of records and of distinct offsets, and the digest of all
    records.
    """
    start = f.unix_millis(f.window("timestamp", window)["start"]).alias("start_ms")
    rows = (
        frame.select("topic", "partition", "offset", start, digest().alias("digest"))
        .groupBy("topic", "partition", "start_ms", "offset")
        .agg(f.count("*").alias("times"), f.first("digest").alias("digest"))
        .groupBy("topic", "partition", "start_ms")
        .agg(f.sum("times"), f.count("*"), f.bit_xor(f.xxhash64("offset", "digest")))
        .collect()
    )
    return {
        Cell(topic, partition, start_ms): Count(records, distinct, seen)
        for topic, partition, start_ms, records, distinct, seen in rows
    }


def within(frame: DataFrame, keys: Sequence[PartitionName], first: Mapping[PartitionName, int]) -> DataFrame:
    """Returns the records that retention has not deleted from the topic, and those without an offset of it."""
    return frame.where(~f.coalesce(_expired(keys, first), f.lit(False)))


def before(frame: DataFrame, first: Mapping[PartitionName, int]) -> int:
    if not any(first.values()):
        return 0
    return frame.where(_expired(list(first), first)).count()


def _expired(keys: Sequence[PartitionName], first: Mapping[PartitionName, int]) -> Column:
    gone = f.lit(False)
    for key in keys:
        if first[key]:
            mine = (f.col("topic") == key.topic) & (f.col("partition") == key.partition)
            gone = gone | (mine & (f.col("offset") < first[key]))
    return gone


def mirrored(
    spark: SparkSession, config: AuditConfig, topics: Sequence[TopicDescription], first: Mapping[PartitionName, int]
) -> DataFrame:
    """Returns the mirror's records with the topic, partition and offset of their source. The offset of other records is
    null."""
    assert config.mirror is not None
    cluster = Cluster(config.mirror.bootstrap, config.properties)
    prefix = config.mirror.prefix
    there = cluster.topics([prefix + topic.name for topic in topics])
    ranges = whole([key for topic in there for key in topic.partition_keys()], cluster)
    frame = read_topics(spark, cluster, ranges, config.options)
    header = f.get(f.filter("headers", lambda header: header["key"] == SOURCE_OFFSET), 0)["value"]
    named = frame.withColumn("topic", f.substring("topic", len(prefix) + 1, LONGEST_NAME)).withColumn(
        "offset", header.cast("string").try_cast("bigint")
    )
    return within(named, [key for topic in topics for key in topic.partition_keys()], first)
