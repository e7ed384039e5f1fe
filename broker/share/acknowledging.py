"""Acknowledgements of a ShareFetch or a ShareAcknowledge, partition by partition: checked, taken, and answered.

Source: KafkaApis.handleAcknowledgements and validateAcknowledgementBatches (KIP-932, KIP-1222).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from broker.share.groups import ShareGroups
from broker.share.sessions import PartitionId
from coordinator.share_partition.acknowledge import Said
from coordinator.share_partition.states import RENEW, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError

FIRST_RENEWING_VERSION: Final = 2


class AcknowledgedBatch(Protocol):
    """One AcknowledgementBatch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Rules(NamedTuple):
    """The request's rules: allowed types, and the state of its session."""

    version: int
    is_renewal: bool

    @property
    def greatest_type(self) -> int:
        return RENEW if self.version >= FIRST_RENEWING_VERSION else AcknowledgeType.REJECT


def check(batches: Sequence[AcknowledgedBatch], rules: Rules) -> list[Said]:
    """Returns the batches as the engine takes them. Raises INVALID_REQUEST."""
    end = -1
    result = []
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if (
            first > last
            or first < end
            or not types
            or (len(types) > 1 and len(types) != last - first + 1)
            or min(types) < AcknowledgeType.GAP
            or max(types) > rules.greatest_type
            or (RENEW in types and not rules.is_renewal)
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        end = last
        result.append(Said(first, last, types))
    return result


class Acknowledging:
    """The acknowledgements of one request; `results` has an answer for each of its partitions once all are there."""

    __slots__ = ("_done", "_waiting", "results")

    def __init__(self) -> None:
        self.results: dict[PartitionId, KafkaError | None] = {}
        self._waiting = 0
        self._done: asyncio.Future[None] | None = None

    @property
    def is_used(self) -> bool:
        """True when the request acknowledges anything."""
        return bool(self._waiting or self.results)

    @property
    def is_done(self) -> bool:
        return not self._waiting

    async def wait(self) -> None:
        """Waits until all answers are there."""
        if self._waiting:
            self._done = asyncio.get_running_loop().create_future()
            await self._done

    def take(
        self,
        groups: ShareGroups,
        group_id: str,
        member_id: str,
        acknowledged: Mapping[PartitionId, Sequence[AcknowledgedBatch]],
        rules: Rules,
    ) -> None:
        """Has the share partitions take their acknowledgements. Those of which nothing is said are answered only beside
        others of which something is, as Apache Kafka has it."""
        said: dict[PartitionId, list[Said]] = {}
        for named, batches in acknowledged.items():
            try:
                groups.check_topic(named)
                checked = check(batches, rules)
                groups.partition(named)
            except KafkaError as error:
                self.results[named] = error
            else:
                said[named] = checked
        if not any(said.values()):
            return
        self._waiting = len(said)
        for named, checked in said.items():
            if checked:
                self._take_one(groups, group_id, member_id, named, checked)
            else:
                self._answer(named, None)

    def _take_one(
        self, groups: ShareGroups, group_id: str, member_id: str, named: PartitionId, checked: list[Said]
    ) -> None:
        hosted = groups.find(group_id, named)
        if hosted is None or not hosted.engine.is_active:
            self._answer(named, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            return
        hosted.refresh()
        hosted.acknowledge(member_id, checked, lambda error: self._answer(named, error))

    def _answer(self, named: PartitionId, error: KafkaError | None) -> None:
        self.results[named] = error
        self._waiting -= 1
        if not self._waiting and self._done is not None and not self._done.done():
            self._done.set_result(None)


def code_of(error: KafkaError | None) -> int:
    return ErrorCode.NONE if error is None else error.code


def message_of(error: KafkaError | None) -> str | None:
    return None if error is None else error.message


def by_topic(results: Mapping[PartitionId, KafkaError | None]) -> dict[bytes, list[tuple[int, KafkaError | None]]]:
    """Returns results grouped as responses have them."""
    topics: dict[bytes, list[tuple[int, KafkaError | None]]] = {}
    for (topic_id, index), error in results.items():
        topics.setdefault(topic_id, []).append((index, error))
    return topics
