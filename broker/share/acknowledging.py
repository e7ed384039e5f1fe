"""Acknowledgements of a ShareFetch or a ShareAcknowledge: validated, applied, and answered per partition.

Source: KafkaApis.handleAcknowledgements and validateAcknowledgementBatches (KIP-932, KIP-1222).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from broker.request.turns import Turns
from broker.request.turns import batches as in_batches
from broker.share.groups import ShareGroups
from broker.share.sessions import PartitionId
from coordinator.share_partition.acknowledge import Acknowledgement
from coordinator.share_partition.states import RENEW, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError
from protocol.tuples import new_tuple

FIRST_RENEWING_VERSION: Final = 2

NO_ERROR: Final = int(ErrorCode.NONE)

Answer = TypeVar("Answer")


class AcknowledgedBatch(Protocol):
    """An AcknowledgementBatch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AcknowledgeRules:
    """The request's rules for acknowledgement types, by its version and by whether it renews locks (KIP-1222)."""

    __slots__ = ("is_renewal", "max_type")

    def __init__(self, version: int, is_renewal: bool) -> None:
        self.is_renewal = is_renewal
        self.max_type: int = RENEW if version >= FIRST_RENEWING_VERSION else AcknowledgeType.REJECT


def check(batches: Sequence[AcknowledgedBatch], rules: AcknowledgeRules, end: int = -1) -> list[Acknowledgement]:
    """Returns the batches in the share partition's form; they must begin after `end`, the last offset of the previous
    batches. Raises INVALID_REQUEST."""
    acknowledgements = []
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if (
            first > last
            or first < end
            or not types
            or (len(types) > 1 and len(types) != last - first + 1)
            or min(types) < AcknowledgeType.GAP
            or max(types) > rules.max_type
            or (RENEW in types and not rules.is_renewal)
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        end = last
        acknowledgements.append(new_tuple(Acknowledgement, (first, last, types)))
    return acknowledgements


async def check_all(
    batches: Sequence[AcknowledgedBatch], rules: AcknowledgeRules, turns: Turns
) -> list[Acknowledgement]:
    """Returns the result of `check`, in turns with other requests."""
    checked: list[Acknowledgement] = []
    for some in in_batches(batches):
        await turns.next()
        checked += check(some, rules, checked[-1].last if checked else -1)
    return checked


class Acknowledging:
    """The acknowledgements of one request; once all are durable or have failed, `results` has each partition's error,
    or None.
    """

    __slots__ = ("_writes", "results")

    def __init__(self) -> None:
        self.results: dict[PartitionId, KafkaError | None] = {}
        self._writes: dict[PartitionId, Awaitable[object]] = {}
        """The partitions whose result may be missing."""

    @property
    def is_used(self) -> bool:
        """True if the request acknowledges anything."""
        return bool(self._writes or self.results)

    async def wait(self, turns: Turns) -> None:
        """Waits until every partition has its result."""
        for partition_id, written in self._writes.items():
            await turns.next()
            try:
                await written
            except KafkaError as error:
                self.results[partition_id] = error
            else:
                self.results[partition_id] = None

    async def acknowledge(
        self,
        groups: ShareGroups,
        group_id: str,
        member_id: str,
        acknowledged: Mapping[PartitionId, Sequence[AcknowledgedBatch]],
        rules: AcknowledgeRules,
        turns: Turns,
    ) -> None:
        """Applies the acknowledgements to their share partitions. As in Apache Kafka, a partition without
        acknowledgements has a result only if other partitions have some.
        """
        by_partition: dict[PartitionId, list[Acknowledgement]] = {}
        for partition_id, batches in acknowledged.items():
            await turns.next()
            try:
                groups.check_topic(partition_id)
                checked = await check_all(batches, rules, turns)
                groups.partition(partition_id)
            except KafkaError as error:
                self.results[partition_id] = error.detached()
            else:
                by_partition[partition_id] = checked
        if not any(by_partition.values()):
            return
        for partition_id, checked in by_partition.items():
            await turns.next()
            if not checked:
                self.results[partition_id] = None
                continue
            try:
                hosted = groups.loaded(group_id, partition_id)
                self._writes[partition_id] = await hosted.acknowledge(member_id, checked, turns)
            except KafkaError as error:
                self.results[partition_id] = error


def code_of(error: KafkaError | None) -> int:
    return NO_ERROR if error is None else error.code


def message_of(error: KafkaError | None) -> str | None:
    return None if error is None else error.message


async def by_topic(
    results: Mapping[PartitionId, KafkaError | None], answer: Callable[[int, KafkaError | None], Answer], turns: Turns
) -> dict[bytes, list[Answer]]:
    """Returns the answers of partitions by topic, as in responses."""
    topics: dict[bytes, list[Answer]] = {}
    for (topic_id, index), error in results.items():
        await turns.next()
        topics.setdefault(topic_id, []).append(answer(index, error))
    return topics
