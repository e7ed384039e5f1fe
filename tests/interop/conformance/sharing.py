"""Requests of share consumers, administrators and leaders, for scripts that run against two brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordinator.share.records import ShareSerde, ShareState, Update
from protocol.messages import alter_share_group_offsets as altering
from protocol.messages import delete_share_group_offsets as removing
from protocol.messages import delete_share_group_state as forgetting
from protocol.messages import describe_share_group_offsets as telling
from protocol.messages import initialize_share_group_state as beginning
from protocol.messages import read_share_group_state as reading
from protocol.messages import read_share_group_state_summary as summing
from protocol.messages import share_acknowledge as acknowledging
from protocol.messages import share_fetch as fetching
from protocol.messages import write_share_group_state as writing
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from tests.interop.conformance.compare import Allowed
from tests.interop.conformance.peers import Exchange, Peer

GROUP_RESOURCE, SET, CONFIGS_VERSION = 32, 0, 1
PRODUCE_VERSION, LIST_OFFSETS_VERSION = 12, 7
NEWEST = 2
WAIT_MS = 3000
LOADED_WITHIN_MS = 20_000
STATE_TOPIC, FETCH_VERSION = "__share_group_state", 12

OWN_WORDS = (
    Allowed(
        r".*\.(acknowledge_)?error_message",
        "what an error code means is told in the project's own words, also where Kafka has none",
        where_so=lambda ours, theirs: isinstance(ours, str),
    ),
)

Said = tuple[int, int, Sequence[int]]
"""First offset, last offset, acknowledgement types."""


def configure(peer: Peer, group: str, **configs: str) -> None:
    """Sets options of a group by attribute names. Not compared."""
    listed = [
        AlterableConfig(name=name.replace("_", "."), config_operation=SET, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=listed)
    peer.quietly(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), CONFIGS_VERSION)
    peer.wait_for_metadata()


def append(peer: Peer, topic: str, counts: Iterable[int], partition: int = 0) -> None:
    """Appends batches with these numbers of records to a topic that is known by name. Not compared."""
    topic_id = next(topic_id for topic_id, name in peer.names.items() if name == topic)
    for count in counts:
        records = bytes(build([Record(0, 1_600_000_000_000, None, b"value") for _ in range(count)]))
        data = TopicProduceData(
            name=topic, topic_id=topic_id, partition_data=[PartitionProduceData(index=partition, records=records)]
        )
        peer.quietly(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]), PRODUCE_VERSION)


class ShareMember:
    """A member of a share group of one topic, and its share session."""

    def __init__(self, peer: Peer, group: str, topic_id: bytes, name: str = "member-1") -> None:
        self.peer = peer
        self.group = group
        self.topic_id = topic_id
        self.name = name
        self.member_epoch = 0
        self.session_epoch = 0

    # Membership.

    def beat(self, *topics: str, epoch: int | None = None, **fields: Any) -> ShareGroupHeartbeatResponse:
        request = self.heartbeat_request(topics or None, self.member_epoch if epoch is None else epoch, **fields)
        answer = self.peer.ask(request, 1, ShareGroupHeartbeatResponse)
        if not answer.error_code:
            self.member_epoch = answer.member_epoch
        return answer

    def heartbeat_request(self, topics: Sequence[str] | None, epoch: int, **fields: Any) -> ShareGroupHeartbeatRequest:
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.name,
            "member_epoch": epoch,
            "subscribed_topic_names": None if topics is None else list(topics),
        }
        return ShareGroupHeartbeatRequest(**{**values, **fields})

    def join(self, *topics: str) -> None:
        """Joins, and sends heartbeats until the member has partitions. Not compared, because the number of heartbeats
        varies."""

        def has_partitions(answer: Any) -> bool:
            assert not answer.error_code, answer
            self.member_epoch = answer.member_epoch
            return bool(answer.assignment and answer.assignment.topic_partitions)

        def heartbeat() -> object | None:
            return self.peer.quietly(self.heartbeat_request(topics, self.member_epoch), 1)

        self.peer.wait_until(heartbeat, has_partitions, f"the join of {self.group}")

    # Fetching.

    def fetch(self, *acknowledged: Said, **fields: Any) -> None:
        """Sends a ShareFetch of partition 0 at the session's epoch, or with other `fields`."""
        version = fields.pop("version", NEWEST)
        self.peer.try_ask(self.fetch_request(*acknowledged, **fields), version)
        self._advance(fields)

    def fetch_quietly(self, *acknowledged: Said, **fields: Any) -> None:
        """Acquires records; waits for them longer than a busy machine needs to load the share partition."""
        fields.setdefault("max_wait_ms", LOADED_WITHIN_MS)
        self.peer.quietly(self.fetch_request(*acknowledged, **fields), NEWEST)
        self._advance(fields)

    def _advance(self, fields: dict[str, Any]) -> None:
        if "share_session_epoch" not in fields:
            self.session_epoch += 1

    def fetch_request(self, *acknowledged: Said, **fields: Any) -> fetching.ShareFetchRequest:
        batches = [
            fetching.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in acknowledged
        ]
        partition = fetching.FetchPartition(partition_index=fields.pop("index", 0), acknowledgement_batches=batches)
        topic = fetching.FetchTopic(topic_id=fields.pop("topic_id", self.topic_id), partitions=[partition])
        values: dict[str, Any] = {
            "group_id": self.group, "member_id": self.name, "share_session_epoch": self.session_epoch,
            "max_wait_ms": WAIT_MS, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500,
            "topics": [topic] if acknowledged or self.session_epoch == 0 or fields.pop("named", False) else [],
            "forgotten_topics_data": [],
        }  # fmt: skip
        return fetching.ShareFetchRequest(**{**values, **fields})

    def topics_of(self, acknowledged: Iterable[tuple[int, Sequence[Said]]]) -> list[fetching.FetchTopic]:
        """Returns partitions for a ShareFetch, by number, with their acknowledgements."""
        partitions = [
            fetching.FetchPartition(partition_index=index, acknowledgement_batches=[
                fetching.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
                for first, last, types in batches
            ])
            for index, batches in acknowledged
        ]  # fmt: skip
        return [fetching.FetchTopic(topic_id=self.topic_id, partitions=partitions)]

    def acknowledge(self, *acknowledged: Said, **fields: Any) -> None:
        """Sends a ShareAcknowledge of partition 0."""
        self.acknowledge_each([(fields.pop("index", 0), acknowledged)] if acknowledged else [], **fields)

    def acknowledge_each(self, acknowledged: Sequence[tuple[int, Sequence[Said]]], **fields: Any) -> None:
        """Sends a ShareAcknowledge of partitions by number, with their acknowledgements."""
        version = fields.pop("version", NEWEST)
        partitions = [
            acknowledging.AcknowledgePartition(partition_index=index, acknowledgement_batches=[
                acknowledging.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
                for first, last, types in batches
            ])
            for index, batches in acknowledged
        ]  # fmt: skip
        topic = acknowledging.AcknowledgeTopic(topic_id=fields.pop("topic_id", self.topic_id), partitions=partitions)
        values: dict[str, Any] = {
            "group_id": self.group, "member_id": self.name, "share_session_epoch": self.session_epoch,
            "topics": [topic] if acknowledged else [],
        }  # fmt: skip
        self.peer.try_ask(acknowledging.ShareAcknowledgeRequest(**{**values, **fields}), version)
        self._advance(fields)


# Administration.


def describe(peer: Peer, *groups: str, operations: bool = False) -> None:
    peer.try_ask(ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations), 1)


def tell_offsets(peer: Peer, version: int, group: str, topics: Mapping[str, Sequence[int]] | None) -> None:
    topics_described = None
    if topics is not None:
        topics_described = [
            telling.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(partitions))
            for name, partitions in topics.items()
        ]
    described = telling.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics_described)
    peer.try_ask(telling.DescribeShareGroupOffsetsRequest(groups=[described]), version)


def alter_offsets(peer: Peer, group: str, topics: dict[str, dict[int, int]]) -> None:
    altered = [
        altering.AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                altering.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                for index, offset in partitions.items()
            ],
        )
        for name, partitions in topics.items()
    ]
    peer.try_ask(altering.AlterShareGroupOffsetsRequest(group_id=group, topics=altered), 0)


def delete_offsets(peer: Peer, group: str, *topics: str) -> None:
    deleted = [removing.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    peer.try_ask(removing.DeleteShareGroupOffsetsRequest(group_id=group, topics=deleted), 0)


# State.


class StateOf:
    """The state of one share partition, requested as by the partition's leader."""

    def __init__(self, peer: Peer, group: str, topic_id: bytes, partition: int = 0) -> None:
        self.peer = peer
        self.group = group
        self.topic_id = topic_id
        self.partition = partition

    def initialize(self, state_epoch: int, start_offset: int) -> None:
        part = beginning.PartitionData(partition=self.partition, state_epoch=state_epoch, start_offset=start_offset)
        topic = beginning.InitializeStateData(topic_id=self.topic_id, partitions=[part])
        self.peer.try_ask(beginning.InitializeShareGroupStateRequest(group_id=self.group, topics=[topic]), 0)

    def read(self, leader_epoch: int) -> None:
        part = reading.PartitionData(partition=self.partition, leader_epoch=leader_epoch)
        topic = reading.ReadStateData(topic_id=self.topic_id, partitions=[part])
        self.peer.try_ask(reading.ReadShareGroupStateRequest(group_id=self.group, topics=[topic]), 0)

    def summary(self, version: int = 1, leader_epoch: int = 0) -> None:
        self.peer.try_ask(self.summary_request(leader_epoch), version)

    def summary_request(self, leader_epoch: int = 0) -> summing.ReadShareGroupStateSummaryRequest:
        part = summing.PartitionData(partition=self.partition, leader_epoch=leader_epoch)
        topic = summing.ReadStateSummaryData(topic_id=self.topic_id, partitions=[part])
        return summing.ReadShareGroupStateSummaryRequest(group_id=self.group, topics=[topic])

    def write(
        self, state_epoch: int, leader_epoch: int, start_offset: int, *batches: tuple[int, int, int, int],
        version: int = 1, complete: int = 0,
    ) -> None:  # fmt: skip
        listed = [
            writing.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        ]
        part = writing.PartitionData(
            partition=self.partition, state_epoch=state_epoch, leader_epoch=leader_epoch, start_offset=start_offset,
            delivery_complete_count=complete, state_batches=listed,
        )  # fmt: skip
        topic = writing.WriteStateData(topic_id=self.topic_id, partitions=[part])
        self.peer.try_ask(writing.WriteShareGroupStateRequest(group_id=self.group, topics=[topic]), version)

    def delete(self) -> None:
        part = forgetting.PartitionData(partition=self.partition)
        topic = forgetting.DeleteStateData(topic_id=self.topic_id, partitions=[part])
        self.peer.try_ask(forgetting.DeleteShareGroupStateRequest(group_id=self.group, topics=[topic]), 0)


def note_records(peer: Peer, group: str) -> None:
    """Records the content of the state topic for a group, without times."""
    requested = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 25)
    topic = FetchTopic(topic=STATE_TOPIC, partitions=[requested])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 25, topics=[topic])
    answer = peer.quietly(request, FETCH_VERSION)
    assert isinstance(answer, FetchResponse)
    records = answer.responses[0].partitions[0].records
    decoded = ShareSerde(Compression.NONE).decode(memoryview(bytes(records or b"")))
    of_group = [(key.partition, timeless(value)) for key, value, _ in decoded if key.group_id == group]
    peer.trace.append(Exchange("records of the state topic", 0, of_group))


def timeless(value: ShareState | Update | None) -> object:
    return value._replace(created_ms=0, written_ms=0) if isinstance(value, ShareState) else value
