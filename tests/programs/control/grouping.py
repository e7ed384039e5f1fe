"""A member of a classic group, as its client would have it."""

from __future__ import annotations

from protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.broker.inprocess import Client

GROUP = "g"
SESSION_MS = 10_000


async def joined(client: Client, topic: str) -> tuple[str, int]:
    """Joins the group alone, with partition 0 of the topic; returns the member's id and the generation."""
    await client.ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4, FindCoordinatorResponse)
    join = JoinGroupRequest(
        group_id=GROUP, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=SESSION_MS, member_id="",
        protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )  # fmt: skip
    member = await client.ask(join, 3, JoinGroupResponse)
    assert member.error_code == 0, member
    assigned = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic=topic, partitions=[0])])
    assignments = [SyncGroupRequestAssignment(member_id=member.member_id, assignment=write(assigned, 1))]
    sync = SyncGroupRequest(
        group_id=GROUP, generation_id=member.generation_id, member_id=member.member_id, assignments=assignments
    )
    assert (await client.ask(sync, 2, SyncGroupResponse)).error_code == 0
    return member.member_id, member.generation_id


async def committed(client: Client, topic: str, offset: int, member: tuple[str, int]) -> None:
    """Commits an offset of partition 0."""
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=GROUP, member_id=member[0], generation_id_or_member_epoch=member[1],
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )  # fmt: skip
    answer = await client.ask(request, 2, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
