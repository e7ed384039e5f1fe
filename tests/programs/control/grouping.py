"""A member of a classic group, as a client implements it."""

from __future__ import annotations

from protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, write
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.offset_commit import (
    OffsetCommitResponse,
)
from protocol.messages.sync_group import SyncGroupResponse
from tests.broker.inprocess import Client
from tests.group_requests import join_group, offset_commit, sync_group

GROUP = "g"
SESSION_MS = 10_000


async def joined(client: Client, topic: str) -> tuple[str, int]:
    """Joins the group as its only member, with partition 0 of the topic; returns the member id and the generation."""
    await client.ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4, FindCoordinatorResponse)
    join = join_group(GROUP, session_ms=SESSION_MS, rebalance_ms=SESSION_MS)
    member = await client.ask(join, 3, JoinGroupResponse)
    assert member.error_code == 0, member
    assigned = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic=topic, partitions=[0])])
    sync = sync_group(GROUP, member.member_id, member.generation_id, {member.member_id: write(assigned, 1)})
    assert (await client.ask(sync, 2, SyncGroupResponse)).error_code == 0
    return member.member_id, member.generation_id


async def committed(client: Client, topic: str, offset: int, member: tuple[str, int]) -> None:
    """Commits an offset of partition 0."""
    request = offset_commit(GROUP, {topic: {0: offset}}, member_id=member[0], generation_id_or_member_epoch=member[1])
    answer = await client.ask(request, 2, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
