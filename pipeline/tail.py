"""The last record of a partition, after which its writer must continue."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, Message, TopicPartition

from pipeline.cluster import Cluster
from pipeline.errors import PipelineError
from pipeline.topics import PartitionName

FIRST_STEP = 16
"""Number of offsets in the first look back, because transaction markers may follow the last record."""
POLL_TIMEOUT_S = 15.0


class Last(NamedTuple):
    """A record's offset and headers."""

    offset: int
    headers: dict[str, bytes | None]


def headers_of(message: Message) -> list[tuple[str, str | bytes | None]]:
    """Returns the headers. librdkafka returns a list; its types allow a mapping, too."""
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else headers


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def last_record(cluster: Cluster, key: PartitionName, first: int, end: int) -> Last | None:
    """Returns the last committed record in [first, end); None if there is none.

    Raises PipelineError if it can't be read.
    """
    step = FIRST_STEP
    while first < end:
        start = max(first, end - step)
        if (last := _last_from(cluster, key, start, end)) is not None:
            return last
        end, step = start, step * 16
    return None


def _last_from(cluster: Cluster, key: PartitionName, start: int, end: int) -> Last | None:
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": "odradek-pipeline",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    last: Last | None = None
    try:
        consumer.assign([TopicPartition(*key, start)])
        while True:
            message = consumer.poll(POLL_TIMEOUT_S)
            if message is None:
                raise PipelineError(
                    f"{cluster.bootstrap}: {key}: no answer at offset {start} in {POLL_TIMEOUT_S:.0f} s"
                )
            error, offset = message.error(), message.offset()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return last
            if error is not None:
                raise PipelineError(f"{cluster.bootstrap}: {key}: {error.str()}")
            if offset is None or offset == OFFSET_INVALID or offset >= end:
                return last
            last = Last(offset, {name: _bytes(value) for name, value in headers_of(message)})
    finally:
        consumer.close()
