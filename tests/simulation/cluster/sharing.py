"""Members of a share group in the cluster: they fetch from leaders, and accept, release, reject or forget records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from protocol.errors import ErrorCode
from protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from protocol.records.batch import iter_batches
from protocol.records.record import read_records
from protocol.types import TopicPartition, Uuid
from tests.simulation.cluster.clients import FETCH_WAIT_MS, Client, NoAnswer
from tests.simulation.cluster.history import Breach

HEARTBEAT_S = 0.4
MAX_RECORDS = 20
MAX_DELIVERIES = 10
ACCEPT, RELEASE, REJECT = 1, 2, 3
FORGET = 0
"""No acknowledgement: the acquisition lock expires."""
CHOICES, WEIGHTS = (ACCEPT, RELEASE, REJECT, FORGET), (14, 3, 1, 2)


class Delivery(NamedTuple):
    """A record that a member has acquired."""

    offset: int
    delivery: int


class ShareHistory:
    """The deliveries of a group, and their outcomes."""

    def __init__(self) -> None:
        self.delivered: dict[TopicPartition, set[int]] = defaultdict(set)
        self.done: dict[TopicPartition, dict[int, float]] = defaultdict(dict)
        """The time when the leader had confirmed that a record was accepted or rejected."""


class ShareMember:
    """A member; all members of a group share a `history`."""

    def __init__(self, client: Client, group: str, topic: str, shared: ShareHistory) -> None:
        self.client = client
        self.group = group
        self.topic = topic
        self.shared = shared
        self.member_id = f"{client.name}-of-{group}"[:22].ljust(22, "A")
        self.epoch = 0
        self.topic_id: Uuid = bytes(16)
        self.partitions: list[int] = []
        self.accepts_all = False
        self._sessions: dict[int, tuple[int, tuple[int, ...]]] = {}
        """The epoch of the next request and the partitions, by leader."""
        self._pending: dict[int, list[tuple[Delivery, int]]] = {}
        """The acknowledgements in the next request, by partition."""

    def start(self) -> None:
        self.client.process.spawn(self._live())
        self.client.process.spawn(self._consume())

    # Membership

    async def _live(self) -> None:
        while True:
            try:
                await self._heartbeat()
            except NoAnswer:
                await self.client.pause()
            await asyncio.sleep(HEARTBEAT_S)

    async def _heartbeat(self) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=[self.topic] if self.epoch == 0 else None,
        )
        answer = await self.client.ask(await self.client.coordinator(self.group), request, ShareGroupHeartbeatResponse)
        code = ErrorCode(answer.error_code)  # type: ignore[call-arg]
        self.client.history.counts[f"share heartbeat {code.name}"] += 1
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.epoch, self.partitions = 0, []
        if code is not ErrorCode.NONE:
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.partitions = []
            for named in answer.assignment.topic_partitions:
                self.topic_id, self.partitions = named.topic_id, sorted(named.partitions)

    # Records

    async def _consume(self) -> None:
        while True:
            try:
                await self._fetch_from_all()
            except NoAnswer:
                await self.client.pause()
            await asyncio.sleep(0.02)

    async def _fetch_from_all(self) -> None:
        by_leader: dict[int, list[int]] = defaultdict(list)
        for index in self.partitions:
            by_leader[await self.client.leader(TopicPartition(self.topic, index))].append(index)
        if not by_leader:
            await self.client.pause()
        for leader, indexes in by_leader.items():
            try:
                await self._fetch(leader, tuple(indexes))
            except NoAnswer:
                self._end_session(leader, indexes)

    def _end_session(self, leader: int, indexes: list[int]) -> None:
        self._sessions.pop(leader, None)
        for index in indexes:
            self._pending.pop(index, None)
            self.client.forget_leader(TopicPartition(self.topic, index))

    async def _fetch(self, leader: int, indexes: tuple[int, ...]) -> None:
        epoch, before = self._sessions.get(leader, (0, indexes))
        if before != indexes:
            epoch = 0
        sent = {index: self._pending.pop(index) for index in indexes if epoch and index in self._pending}
        named = [
            FetchPartition(partition_index=index, acknowledgement_batches=batches_of(sent.get(index, [])))
            for index in (indexes if epoch == 0 else sent)
        ]
        request = ShareFetchRequest(
            group_id=self.group, member_id=self.member_id, share_session_epoch=epoch, max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1, max_bytes=1 << 20, max_records=MAX_RECORDS, batch_size=MAX_RECORDS,
            topics=[FetchTopic(topic_id=self.topic_id, partitions=named)] if named else [], forgotten_topics_data=[],
        )  # fmt: skip
        begun_s = self.client.world.loop.time()
        answer = await self.client.ask(leader, request, ShareFetchResponse)
        if answer.error_code:
            self.client.history.counts[f"share {answer.error_code}"] += 1
            raise NoAnswer
        self._sessions[leader] = epoch + 1, indexes
        for data in [one for topic in answer.responses for one in topic.partitions]:
            name = TopicPartition(self.topic, data.partition_index)
            self._acknowledged(name, sent.get(data.partition_index, []), data.acknowledge_error_code)
            if data.error_code:
                self.client.history.counts[f"share fetch {data.error_code}"] += 1
                raise NoAnswer
            self._delivered(name, leader, data, begun_s)

    def _acknowledged(self, name: TopicPartition, sent: list[tuple[Delivery, int]], code: int) -> None:
        if sent:
            self.client.history.counts[f"acknowledgement {code}"] += 1
        for delivery, kind in sent if code == ErrorCode.NONE else ():
            if kind in (ACCEPT, REJECT):
                self.shared.done[name].setdefault(delivery.offset, self.client.world.loop.time())

    def _delivered(self, name: TopicPartition, leader: int, data: PartitionData, begun_s: float) -> None:
        history, dice = self.client.history, self.client.world.dice
        is_former = self.client.world.leader_of(name) != leader
        values = dict(values_in(data))
        for acquired in data.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                delivery = Delivery(offset, acquired.delivery_count)
                history.counts["delivered"] += 1
                self.shared.delivered[name].add(offset)
                if offset in values:
                    history.saw(name, offset, values[offset])
                if delivery.delivery > MAX_DELIVERIES:
                    history.breach(Breach.DELIVERED, f"{name}: offset {offset}, for the {delivery.delivery}th time")
                if not is_former and self.shared.done[name].get(offset, begun_s) < begun_s:
                    history.breach(Breach.DELIVERED, f"{name}: offset {offset}, after it was done with")
                kind = ACCEPT if self.accepts_all else dice.choices(CHOICES, WEIGHTS)[0]
                if kind != FORGET:
                    self._pending.setdefault(name.partition, []).append((delivery, kind))


def batches_of(acknowledgements: list[tuple[Delivery, int]]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=delivery.offset, last_offset=delivery.offset, acknowledge_types=[kind])
        for delivery, kind in sorted(acknowledgements)
    ]


def values_in(data: PartitionData) -> Iterator[tuple[int, bytes]]:
    records = memoryview(data.records or b"")
    for position, header in iter_batches(records):
        for record in read_records(records, position, header):
            yield record.offset, record.value or b""
