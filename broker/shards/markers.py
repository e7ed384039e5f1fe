"""Markers: the control batch that ends a producer's transaction in a partition that this broker leads.

On `__consumer_offsets` the group coordinator writes it, because the marker commits or drops its pending offsets.
Source: KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.logging import get_logger
from broker.replica.waits import committed
from broker.shards.environment import Environment
from broker.shards.groups import TOPIC as OFFSETS
from broker.shards.groups import GroupCoordinator
from broker.shards.translations import MARKERS, translated
from protocol.errors import KafkaError
from protocol.records.control import ControlType, EndTxnMarker, end_txn_batch
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from coordinator.group.records import EndTransaction

logger = get_logger(__name__)


class Marker(NamedTuple):
    """The end of a producer's transaction, the same for all of its partitions."""

    record: EndTransaction
    transaction_version: int
    batch: bytes
    """The encoded batch before a log assigns its offset: the same for all partitions."""


def marker_of(record: EndTransaction, transaction_version: int, now_ms: int) -> Marker:
    """Returns the marker of a transaction that ends now."""
    kind = ControlType.COMMIT if record.committed else ControlType.ABORT
    content = EndTxnMarker(kind, record.coordinator_epoch)
    batch = end_txn_batch(content, record.producer_id, record.producer_epoch, now_ms)
    return Marker(record, transaction_version, bytes(batch))


class MarkerWriter:
    """Writes markers into the partitions that this broker leads."""

    def __init__(self, environment: Environment, groups: GroupCoordinator) -> None:
        self._environment = environment
        self._groups = groups

    def begin(self, name: TopicPartition, marker: Marker) -> Coroutine[Any, Any, None] | None:
        """Appends the marker to the partition, and returns a coroutine that ends once it is committed; None if it is
        already. Both raise KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS,
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, REQUEST_TIMED_OUT, and the log's errors."""
        partition = self._environment.replicas.leader(*name)
        batch = memoryview(bytearray(marker.batch))
        if name.topic != OFFSETS.name:
            end = partition.end_transaction(batch, marker.transaction_version, self._environment.clock.now_ms())
            if end <= partition.high_watermark:
                return None
            return committed(partition, end, self._environment.config.request_timeout_ms)
        try:
            self._groups.flush(name.partition)
            partition.check_end_of_transaction(batch, marker.transaction_version)
            ended = self._groups.end_transaction(name.partition, marker.record)
            if ended.done():
                return ended.result()
        except KafkaError as error:
            raise as_told(error) from error
        return _awaited(ended)


async def _awaited(ended: asyncio.Future[None]) -> None:
    try:
        await ended
    except KafkaError as error:
        raise as_told(error) from error


def as_told(error: KafkaError) -> KafkaError:
    """Returns a group coordinator's error as the sender of markers understands it."""
    return KafkaError(translated(error.code, MARKERS), error.message)
