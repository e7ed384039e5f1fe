"""Members of both protocols in one group, for tests. Classic members send what a test says."""

from __future__ import annotations

from coordinator.group import requests
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rendezvous import STABLE
from coordinator.group.records import AnyRecord
from coordinator.group.state import Client
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read,
    write,
)
from protocol.errors import ErrorCode, error_code
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.driver import Asked
from tests.coordinator.group.world import GROUP, Groups
from tests.group_requests import join_group, sync_group

Owned = dict[str, list[int]]


def subscription(topics: list[str], owned: Owned | None = None) -> bytes:
    partitions = [TopicPartition(topic=topic, partitions=indexes) for topic, indexes in (owned or {}).items()]
    return write(ConsumerProtocolSubscription(topics=topics, owned_partitions=partitions), 1)


def assignment(partitions: Owned, user_data: bytes | None = None) -> bytes:
    assigned = [TopicPartition(topic=topic, partitions=indexes) for topic, indexes in partitions.items()]
    return write(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=user_data), 1)


class MixedGroups(Groups):
    """Members of either protocol."""

    def classic_join(
        self,
        member_id: str,
        owned: Owned | None = None,
        *,
        topics: tuple[str, ...] = ("foo",),
        instance_id: str | None = None,
        strategies: tuple[str, ...] = ("range", "sticky"),
        protocol_type: str = "consumer",
        version: int = 9,
        metadata: bytes | None = None,
    ) -> Asked[JoinGroupResponse, AnyRecord]:
        metadata = subscription(list(topics), owned) if metadata is None else metadata
        request = join_group(
            GROUP, member_id, strategies, metadata, rebalance_ms=6_000, protocol_type=protocol_type,
            group_instance_id=instance_id,
        )  # fmt: skip
        return self.ask(requests.join_group, request, Client(version, "classic", "/127.0.0.1"))

    def classic_sync(
        self, member_id: str, generation: int, given: dict[str, bytes] | None = None, **fields: str
    ) -> Asked[SyncGroupResponse, AnyRecord]:
        names = {"protocol_type": "consumer", "protocol_name": "range", **fields}
        request = sync_group(GROUP, member_id, generation, given, **names)
        return self.ask(requests.sync_group, request, Client(5, "classic", "/127.0.0.1"))

    def classic_heartbeat(self, member_id: str, generation: int) -> ErrorCode:
        request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
        answer = self.ask(requests.heartbeat, request, Client(4, "classic", "/127.0.0.1")).answer
        return error_code(answer.error_code)

    def classic_leave(self, *members: MemberIdentity) -> LeaveGroupResponse:
        request = LeaveGroupRequest(group_id=GROUP, members=list(members))
        return self.ask(requests.leave_group, request, Client(5, "classic", "/127.0.0.1")).answer

    def own(self, member_id: str, generation: int) -> Owned:
        """Returns the assignment in SyncGroup's answer."""
        answer = self.classic_sync(member_id, generation).answer
        partitions = read(ConsumerProtocolAssignment, answer.assignment).assigned_partitions
        return {topic.topic: topic.partitions for topic in partitions}

    @property
    def classic(self) -> ClassicGroup:
        group = self.shard.state.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    def new_classic_member(self) -> str:
        """Creates a member of a stable classic group, which has all partitions of topic foo."""
        first = self.classic_join("").answer
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.classic_join(first.member_id)
        self.advance(3_000)
        indexes = list(range(len(self.topics.by_name["foo"].partitions)))
        self.classic_sync(first.member_id, 1, {first.member_id: assignment({"foo": indexes})})
        assert self.classic.state is STABLE
        return first.member_id
