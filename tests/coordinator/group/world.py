"""A shard of groups with topics, a clock and members that send what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from coordinator.cluster.changes import PartitionCreated, TopicCreated, TopicDeleted
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from coordinator.engine.result import Ticket
from coordinator.group.config import GroupConfig
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.heartbeat import heartbeat
from coordinator.group.consumer.member import Member
from coordinator.group.consumer.patterns import Matched, patterns_matched
from coordinator.group.records import AnyRecord, GroupRecord, GroupResult
from coordinator.group.regex import Resolved, match_all
from coordinator.group.serde import GroupSerde
from coordinator.group.settings import GroupSettings
from coordinator.group.shard import GroupShard
from coordinator.group.state import Client, GroupEnvironment, GroupState, MatchRequest
from coordinator.group.subscription_metadata import TopicWatch
from protocol.coordinator_records import encode_key
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.records.compression import Compression
from protocol.types import Uuid
from tests.coordinator.driver import Asked, Driver

GROUP = "group"
SOON_MS = 1_000
"""The assignment interval: after it, a new target assignment may be computed."""

SERDE = GroupSerde(lambda: 1_048_588, lambda: Compression.NONE)

A = TypeVar("A")
C = TypeVar("C")
Q = TypeVar("Q")

Partitions = Mapping[Uuid, Iterable[int]]


class FakeTopics:
    """Topics, as the image has them."""

    def __init__(self) -> None:
        self.by_name: dict[str, Topic] = {}
        self.version = 100

    def topic(self, name: str) -> Topic | None:
        return self.by_name.get(name)

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        return next((topic for topic in self.by_name.values() if topic.topic_id == topic_id), None)

    def topic_names(self) -> list[str]:
        return sorted(self.by_name)


class Groups(Driver[GroupShard, AnyRecord]):
    """A shard of groups."""

    def __init__(self, **settings: object) -> None:
        self.settings = GroupSettings(**settings)  # type: ignore[arg-type]
        self.config = GroupConfig()
        self.topics = FakeTopics()
        self.watch = TopicWatch(self.topics, version=lambda: self.topics.version)
        self.match_requests: list[MatchRequest] = []
        super().__init__(GroupShard(self.world), through_log)

    @property
    def world(self) -> GroupEnvironment:
        return GroupEnvironment(
            settings=lambda: self.settings,
            group_config=lambda _group_id: self.config,
            topics=self.topics,
            new_uuid=self._new_uuid,
            match_topics=self.match_requests.append,
            watch=self.watch,
        )

    @property
    def shard(self) -> GroupShard:
        return self.machine

    def _new_uuid(self) -> Uuid:
        self.drawn += 1
        return self.drawn.to_bytes(16, "big")

    # Topics.

    def create_topic(self, name: str, partitions: int) -> Uuid:
        self.topics.version += 1
        topic_id = (1000 + self.topics.version).to_bytes(16, "big")
        topic = self.topics.by_name[name] = Topic(name, topic_id)
        self.watch.note(TopicCreated(topic))
        self.add_partitions(name, partitions)
        return topic_id

    def add_partitions(self, name: str, count: int) -> None:
        topic = self.topics.by_name[name]
        for _ in range(count):
            self.topics.version += 1
            index = len(topic.partitions)
            topic.partitions[index] = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
            self.watch.note(PartitionCreated(topic, index, topic.partitions[index]))

    def delete_topic(self, name: str) -> None:
        self.topics.version += 1
        self.watch.note(TopicDeleted(self.topics.by_name.pop(name)))

    # Decisions.

    def ask(
        self,
        decide: Callable[[GroupState, Q, C, Ticket[A], int], GroupResult],
        request: Q,
        requester: C,
        then: Callable[[A | KafkaError], object] | None = None,
    ) -> Asked[A, AnyRecord]:
        return self.send(partial(decide, self.shard.state, request, requester), then)

    def loaded(self) -> GroupShard:
        """Returns a shard that is loaded from the compacted log, as by another broker."""
        newest = {encode_key(record.key): record for record in self.log if isinstance(record, GroupRecord)}
        shard = GroupShard(self.world)
        for key, record in newest.items():
            if record.value is not None or key:
                shard.apply(record)
        shard.activate(self.now_ms)
        return shard

    def reload(self) -> None:
        self.replace(self.loaded())

    # Requests.

    def heartbeat(
        self,
        member_id: str,
        epoch: int,
        *,
        version: int = 1,
        owned: Partitions | None = None,
        topics: list[str] | None = None,
        **fields: object,
    ) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            topic_partitions=None
            if owned is None
            else [TopicPartitions(topic_id=topic_id, partitions=list(indexes)) for topic_id, indexes in owned.items()],
            subscribed_topic_names=topics,
            **fields,  # type: ignore[arg-type]
        )
        client = Client(version, "client", "/127.0.0.1")
        return self.ask(heartbeat, request, client).answer

    def join(self, member_id: str, topics: list[str] | None = None, **fields: object) -> ConsumerGroupHeartbeatResponse:
        return self.heartbeat(
            member_id,
            0,
            topics=topics,
            **{"owned": {}, "rebalance_timeout_ms": 5_000, **fields},  # type: ignore[arg-type]
        )

    def refusal(self, ask: Callable[[], object]) -> tuple[ErrorCode, str]:
        """Returns the error of a request, which must write no record."""
        before = len(self.log)
        try:
            ask()
        except KafkaError as error:
            assert len(self.log) == before
            return error.code, error.message
        raise AssertionError("it was not refused")

    def match_patterns(self) -> list[AnyRecord]:
        """Matches patterns on request, as the broker does."""
        written: list[AnyRecord] = []
        for request in list(self.match_requests):
            matched = match_all(request.patterns, self.topics.topic_names())
            resolved = {
                pattern: Resolved(names, self.topics.version, self.now_ms) for pattern, names in matched.items()
            }
            written += self.ask(patterns_matched, Matched(request.group_id, resolved), Client(1)).records
        self.match_requests.clear()
        return written

    # State.

    @property
    def group(self) -> ConsumerGroup:
        group = self.shard.state.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    def member(self, member_id: str) -> Member:
        return self.group.members[member_id]


def through_log(records: Sequence[AnyRecord], now_ms: int) -> list[AnyRecord]:
    return list(SERDE.decode(SERDE.batches(SERDE.encode(records, now_ms))))


def assigned(response: ConsumerGroupHeartbeatResponse) -> dict[Uuid, list[int]] | None:
    """Returns the partitions in an answer."""
    if response.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
