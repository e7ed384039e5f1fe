"""mirror: copies topics to another cluster, with partition, key, value, headers and timestamp.

Each record has its source offset in a header, so the target itself shows where to continue: after a crash, no record is
duplicated or lost. Only one mirror at a time can write to a partition: it fences earlier mirrors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from pipeline.cluster import Cluster
from pipeline.errors import LostRange, PipelineError
from pipeline.ranges import Range
from pipeline.sending import SendTarget, positions, send
from pipeline.source import SPARK_FAILURES, explained, read_topics
from pipeline.store import Hook, nowhere
from pipeline.topics import PartitionName, TopicDescription

NOT_COPIED = frozenset(
    {
        "message.timestamp.type",  # the source's timestamps are kept, so the target must not set its own
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
)


SPLITTING = frozenset({"minpartitions", "maxrecordsperpartition"})
"""Options of the connector that split a partition into several tasks, which would not write in order."""


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    """The source and the target. `follow_s` is the pause between rounds; None ends when all records are mirrored."""

    source: str
    target: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    prefix: str = ""
    follow_s: float | None = None
    max_records: int = 1_000_000
    options: Mapping[str, str] = field(default_factory=dict)
    source_properties: Mapping[str, str] = field(default_factory=dict)
    target_properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Round:
    """The records that a round wrote, and the records that remain in the source, per partition."""

    records: int
    lag: dict[PartitionName, int]
    seconds: float


def mirror(
    spark: SparkSession, config: MirrorConfig, shown: Callable[[Round], None] | None = None, at: Hook = nowhere
) -> int:
    """Mirrors in rounds of at most `max_records` records; returns the number of records written. Raises
    PipelineError.
    """
    if split := [name for name in config.options if name.lower() in SPLITTING]:
        raise PipelineError(f"{split[0]}: a mirror must write each partition in order, in one task")
    source = Cluster(config.source, config.source_properties)
    total = 0
    while True:
        done = mirror_round(spark, config, source, at)
        total += done.records
        if shown is not None:
            shown(done)
        if any(done.lag.values()) and done.records:
            continue
        if config.follow_s is None:
            return total
        time.sleep(config.follow_s)


def mirror_round(spark: SparkSession, config: MirrorConfig, source: Cluster, at: Hook = nowhere) -> Round:
    """Mirrors one round of all topics."""
    began = time.monotonic()
    topics = source.topics(config.topics, config.pattern)
    names = {topic.name: config.prefix + topic.name for topic in topics}
    ids = {topic.name: topic.id for topic in topics}
    target = SendTarget(config.target, names, config.target_properties, ids)
    for topic in topics:
        prepare(source, target.cluster(), topic, names[topic.name])
    at("prepared")
    keys = [key for topic in topics for key in topic.partition_keys()]
    ranges = planned(keys, source, positions(target, keys), config.max_records)
    try:
        sent = send(read_topics(spark, source, ranges, config.options), target)
    except SPARK_FAILURES as error:
        raise explained(error, source, ranges) from error
    at("sent")
    reached = {span.key: span.end for span in ranges}
    ends = source.end_offsets(keys)
    lag = {key: ends[key] - reached.get(key, ends[key]) for key in keys}
    return Round(sum(result.records for result in sent), lag, time.monotonic() - began)


def planned(
    keys: Sequence[PartitionName], source: Cluster, begun: Mapping[PartitionName, int], max_records: int
) -> list[Range]:
    """Returns the ranges that are not mirrored yet, limited to `max_records` for a round. Raises LostRange."""
    first, end = source.start_offsets(keys), source.end_offsets(keys)
    share = max(1, max_records // max(1, len(keys)))
    ranges = []
    for key in keys:
        start = begun.get(key, first[key])
        if start < first[key]:
            raise LostRange(
                f"{source.bootstrap}: {key}: offsets {start} to {first[key] - 1} are lost: retention deleted them "
                f"before they were mirrored. The partition now begins with {first[key]}"
            )
        if start > end[key]:
            raise PipelineError(f"{source.bootstrap}: {key} ends with {end[key] - 1}, its mirror with {start - 1}")
        if start < end[key]:
            ranges.append(Range(*key, start, min(end[key], start + share)))
    return ranges


def prepare(source: Cluster, target: Cluster, topic: TopicDescription, name: str) -> None:
    """Creates the target topic with the partitions and the own configs of its source."""
    configs = {key: value for key, value in source.configs(topic.name).items() if key not in NOT_COPIED}
    if target.create(name, len(topic.partitions), configs):
        return
    (there,) = target.topics([name])
    if len(there.partitions) > len(topic.partitions):
        raise PipelineError(
            f"{target.bootstrap}: {name} has {len(there.partitions)} partitions, its source {len(topic.partitions)}"
        )
    if len(there.partitions) < len(topic.partitions):
        target.grow(name, len(topic.partitions))
    has = target.configs(name)
    if changed := {key: value for key, value in configs.items() if has.get(key) != value}:
        target.set_configs(name, changed)
