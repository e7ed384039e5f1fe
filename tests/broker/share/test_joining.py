"""Tests ShareGroupHeartbeat on a whole broker: a member that joins a share group gets its partitions at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.broker.inprocess import InProcess
from tests.broker.share.test_share_fetch import GROUP
from tests.broker.share.test_share_fetch import OPTIONS as SHARE_OPTIONS

JOINING = 0
OPTIONS = {**SHARE_OPTIONS, "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}


async def beat(broker: InProcess, member_id: str, epoch: int = JOINING) -> ShareGroupHeartbeatResponse:
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=["topic"] if epoch == JOINING else None,
    )
    return await broker.client().ask(request, 1, ShareGroupHeartbeatResponse)


async def coordinated(broker: InProcess) -> None:
    """Returns once the group's coordinator is available."""
    groups = broker.server.broker.groups
    await groups.leader_of(GROUP)
    for _ in range(1_000):
        if groups.is_active(groups.partition_of(GROUP)):
            break
        await asyncio.sleep(0)


def assigned(response: ShareGroupHeartbeatResponse) -> list[tuple[bytes, list[int]]]:
    assert response.assignment is not None
    return [(topic.topic_id, topic.partitions) for topic in response.assignment.topic_partitions]


async def test_members_that_join_while_state_is_made_are_answered_with_their_partitions(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        topic_id = await broker.create_topic("topic", 1)
        await coordinated(broker)
        answers = await asyncio.gather(*(beat(broker, f"member-{number}") for number in range(3)))
        assert [assigned(answer) for answer in answers] == [[(topic_id, [0])]] * 3
        assert [answer.error_code for answer in answers] == [0, 0, 0]
        following = await beat(broker, "member-0", answers[0].member_epoch)
        assert (following.error_code, following.heartbeat_interval_ms) == (0, 5000)


async def test_a_member_that_joins_later_is_answered_once_it_has_its_partitions(tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "group.share.assignment.interval.ms": "200",
        "group.share.min.assignment.interval.ms": "0",
    }
    async with InProcess(tmp_path, options) as broker:
        topic_id = await broker.create_topic("topic", 1)
        await coordinated(broker)
        first, second = await beat(broker, "member-1"), await beat(broker, "member-2")
        assert [assigned(first), assigned(second)] == [[(topic_id, [0])]] * 2
        assert second.member_epoch == first.member_epoch + 1


async def test_a_member_that_joins_a_topic_that_is_not_there_is_answered_without_partitions(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await coordinated(broker)
        assert assigned(await beat(broker, "member")) == []
