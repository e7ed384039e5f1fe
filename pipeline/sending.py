"""Writes data frames to topics in Spark's Python workers: each task writes the records of one partition, in order.

Spark's own sink is not used, because it has no column for timestamps, and a retried task writes its records again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from pipeline.cluster import Cluster
from pipeline.errors import PipelineError, TopicChanged
from pipeline.producing import FencedWriter, Outgoing, Writer, write_all
from pipeline.tail import Last, last_record
from pipeline.topics import PartitionName

OWN_HEADERS = "odradek."
"""The prefix of headers with the source of a mirrored record."""
SOURCE_TOPIC_ID = "odradek.source.topic.id"
SOURCE_OFFSET = "odradek.source.offset"


class Sent(NamedTuple):
    """The result of one task."""

    topic: str
    partition: int
    records: int


@dataclass(frozen=True, slots=True)
class SendTarget:
    """The target of records. With `source_ids`, records have their source offset in a header, and records that the
    target already has are skipped.
    """

    bootstrap: str
    names: Mapping[str, str]
    properties: Mapping[str, str] = field(default_factory=dict)
    source_ids: Mapping[str, str] | None = None

    def cluster(self) -> Cluster:
        return Cluster(self.bootstrap, self.properties)

    def key(self, source: PartitionName) -> PartitionName:
        return PartitionName(self.names[source.topic], source.partition)


def send(frame: DataFrame, target: SendTarget) -> list[Sent]:
    """Writes the records; each task of the frame has the records of one partition, by offset. Raises Spark's
    exceptions.
    """
    rows = frame.select(
        "topic", "partition", "offset", "key", "value", "headers", f.unix_millis("timestamp").alias("timestamp_ms")
    )
    return rows.rdd.mapPartitions(Task(target)).collect()


class Task:
    """The work of a task, as a value that Spark can send to a worker."""

    def __init__(self, target: SendTarget) -> None:
        self._target = target

    def __call__(self, rows: Iterable[Row]) -> Iterator[Sent]:
        target, left = self._target, iter(rows)
        first = next(left, None)
        if first is None:
            return
        key = PartitionName(first["topic"], first["partition"])
        write = _appended if target.source_ids is None else _mirrored
        yield Sent(*key, write(target, key, first, left))


def _appended(target: SendTarget, key: PartitionName, first: Row, left: Iterator[Row]) -> int:
    """Writes all rows. Raises PipelineError if an earlier attempt may have written some of them."""
    task = TaskContext.get()
    if task is not None and task.attemptNumber() > 0:
        raise PipelineError(f"{key}: the task failed and may have written records; write to a topic of another name")
    with Writer(target.bootstrap, target.names[key.topic], target.properties) as writer:
        return write_all(writer, (outgoing(row) for row in _from(0, key, first, left)))


def _mirrored(target: SendTarget, key: PartitionName, first: Row, left: Iterator[Row]) -> int:
    """Writes the rows that the target doesn't have yet, after fencing earlier writers."""
    there = target.key(key)
    with FencedWriter(target.bootstrap, there.topic, transactional_id(there), target.properties) as writer:
        begin = positions(target, [key]).get(key, 0)
        return write_all(writer, (outgoing(row, target.source_ids) for row in _from(begin, key, first, left)))


def transactional_id(there: PartitionName) -> str:
    """Returns the transactional id with which mirrors into a partition fence each other."""
    return f"odradek-mirror-{there}"


def _from(begin: int, key: PartitionName, first: Row, left: Iterator[Row]) -> Iterator[Row]:
    """Yields the rows from an offset on. Raises PipelineError if they are not of one partition, in order."""
    last = -1
    for row in _chained(first, left):
        at = PartitionName(row["topic"], row["partition"])
        if at != key or row["offset"] <= last:
            raise PipelineError(f"{at} offset {row['offset']}: not in order, after {key} offset {last}")
        last = row["offset"]
        if last >= begin:
            yield row


def _chained(first: Row, left: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from left


def outgoing(row: Row, source_ids: Mapping[str, str] | None = None) -> Outgoing:
    """Returns a row as a record to be written, with the headers of a mirror if ids of source topics are given."""
    headers = [(header["key"], _bytes(header["value"])) for header in row["headers"] or ()]
    if source_ids is not None:
        headers = [pair for pair in headers if not pair[0].startswith(OWN_HEADERS)]
        headers.append((SOURCE_TOPIC_ID, source_ids[row["topic"]].encode()))
        headers.append((SOURCE_OFFSET, str(row["offset"]).encode()))
    return Outgoing(_bytes(row["key"]), _bytes(row["value"]), headers, row["timestamp_ms"], row["partition"])


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def positions(target: SendTarget, sources: Sequence[PartitionName]) -> dict[PartitionName, int]:
    """Returns the source offset to continue from, for each source partition of which the target has records.

    Raises PipelineError if other programs write to the target, or if its last record is gone; TopicChanged if its
    records came from a deleted topic of the same name.
    """
    cluster = target.cluster()
    keys = {source: target.key(source) for source in sources}
    first, end = cluster.start_offsets(keys.values()), cluster.end_offsets(keys.values())
    next_offsets: dict[PartitionName, int] = {}
    for source, key in keys.items():
        if end[key] == 0:
            continue
        last = last_record(cluster, key, first[key], end[key])
        if last is None and first[key] == 0:
            continue  # only aborted transactions
        if last is None:
            raise PipelineError(
                f"{target.bootstrap}: {key} had records up to offset {end[key] - 1} but now has none, so the mirror's "
                "position is unknown. Mirror to a topic of another name"
            )
        next_offsets[source] = 1 + source_offset(last, source, key, target)
    return next_offsets


def source_offset(last: Last, source: PartitionName, key: PartitionName, target: SendTarget) -> int:
    """Returns the source offset of the last record of a mirrored partition."""
    offset, topic_id = last.headers.get(SOURCE_OFFSET), last.headers.get(SOURCE_TOPIC_ID)
    if offset is None or topic_id is None:
        raise PipelineError(f"{target.bootstrap}: {key} offset {last.offset} was not written by a mirror of {source}")
    expected = (target.source_ids or {}).get(source.topic, "")
    if topic_id.decode() != expected:
        raise TopicChanged(
            f"{source.topic} was deleted and created again: its id is {expected}, {key} at {target.bootstrap} has "
            f"records of {topic_id.decode()} up to offset {int(offset)}. Mirror to a topic of another name"
        )
    return int(offset)
