"""Tests group members when an answer is lost, their coordinator is away, or topics change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from client.errors import ConnectionClosed, PeerUnavailable, RequestTimedOut
from commands.client.patience import GIVE_UP_MS, EmptyHanded
from commands.errors import BrokerUnreachable, CoordinatorAway
from commands.groups.consumer import GroupConsumer
from commands.groups.membership import Membership
from commands.shares.consumer import ShareConsumer
from commands.shares.membership import ShareMembership
from commands.shares.session import ACCEPT, SharePlace
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.clock import ManualClock
from tests.commands.scripted_cluster import TIMEOUT_MS, TOPIC_ID, ScriptedCluster

HERE = SharePlace(TOPIC_ID, 0)
TOO_LATE = RequestTimedOut("127.0.0.1:9092", "no answer", sent=True)
LOST = PeerUnavailable("127.0.0.1:9092", "the connection is lost", sent=True)


def heartbeat(epoch: int, assignment: list[int] | None = None, code: int = 0) -> ShareGroupHeartbeatResponse:
    """Returns the answer to a share group's heartbeat, with partitions of the only topic."""
    assigned = (
        None
        if assignment is None
        else Assignment(topic_partitions=[TopicPartitions(topic_id=TOPIC_ID, partitions=assignment)])
    )
    return ShareGroupHeartbeatResponse(
        error_code=code, member_epoch=epoch, heartbeat_interval_ms=5000, assignment=assigned
    )


def joined(request: object) -> JoinGroupResponse:
    """Returns a JoinGroup answer in which the member is the only one of its group, and its leader."""
    assert isinstance(request, JoinGroupRequest)
    member = JoinGroupResponseMember(member_id="me", metadata=request.protocols[0].metadata)
    return JoinGroupResponse(
        error_code=0, generation_id=1, protocol_name="range", leader="me", member_id="me", members=[member]
    )


def synced(request: object) -> SyncGroupResponse:
    """Returns the SyncGroup answer to a leader: the assignment that it made for itself."""
    assert isinstance(request, SyncGroupRequest)
    return SyncGroupResponse(error_code=0, assignment=request.assignments[0].assignment)


async def alive_until(keep_alive: Coroutine[Any, Any, None], is_done: Callable[[], bool]) -> None:
    """Runs a member until a condition holds, which takes only the member's own time; raises the member's error."""
    task = asyncio.ensure_future(keep_alive)
    for _ in range(10_000):
        if task.done() or is_done():
            break
        await asyncio.sleep(0)
    was_done = is_done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    assert was_done, "the member stands still"


@pytest.fixture
def cluster() -> ScriptedCluster:
    cluster = ScriptedCluster(orders=1)
    cluster.answer(JoinGroupRequest, joined)
    cluster.answer(SyncGroupRequest, synced)
    cluster.answer(HeartbeatRequest, HeartbeatResponse(error_code=0))
    return cluster


@pytest.fixture
def sharer(cluster: ScriptedCluster) -> ShareMembership:
    return ShareMembership(cluster.client, "workers", ["orders"])


@pytest.fixture
def member(cluster: ScriptedCluster) -> Membership:
    return Membership(cluster.client, "billing", ["orders"])


@pytest.mark.parametrize("failure", [TOO_LATE, LOST])
async def test_a_sharer_that_missed_an_answer_asks_for_all_of_it(
    cluster: ScriptedCluster, sharer: ShareMembership, failure: Exception
) -> None:
    def coordinator(request: object) -> ShareGroupHeartbeatResponse:  # an assignment is told once, or when asked for
        assert isinstance(request, ShareGroupHeartbeatRequest)
        return heartbeat(2, [0] if request.subscribed_topic_names else None)

    cluster.answer(ShareGroupHeartbeatRequest, heartbeat(1, []), failure, coordinator)
    await alive_until(sharer.keep_alive(), lambda: bool(sharer.places))
    assert sharer.places == [HERE]


async def test_a_sharer_that_is_fenced_while_it_joins_leaves_first(
    cluster: ScriptedCluster, sharer: ShareMembership
) -> None:
    is_inside = True

    def coordinator(request: object) -> ShareGroupHeartbeatResponse:  # it has got two joins, and answered neither
        nonlocal is_inside
        assert isinstance(request, ShareGroupHeartbeatRequest)
        if request.member_epoch < 0:
            is_inside = False
            return heartbeat(-1)
        return heartbeat(0, code=ErrorCode.FENCED_MEMBER_EPOCH) if is_inside else heartbeat(1, [0])

    cluster.answer(ShareGroupHeartbeatRequest, coordinator)
    await alive_until(sharer.keep_alive(), lambda: bool(sharer.places))
    assert [one.member_epoch for one in cluster.requests(ShareGroupHeartbeatRequest)][:3] == [0, -1, 0]


async def test_a_sharer_that_is_fenced_joins_again(cluster: ScriptedCluster, sharer: ShareMembership) -> None:
    fenced = heartbeat(0, code=ErrorCode.FENCED_MEMBER_EPOCH)
    cluster.answer(ShareGroupHeartbeatRequest, heartbeat(3, [0]), fenced, heartbeat(1, [0]))
    await alive_until(sharer.keep_alive(), lambda: len(cluster.requests(ShareGroupHeartbeatRequest)) >= 3)
    assert [one.member_epoch for one in cluster.requests(ShareGroupHeartbeatRequest)][:3] == [0, 3, 0]


async def test_a_coordinator_that_moves_is_looked_for_again(cluster: ScriptedCluster, sharer: ShareMembership) -> None:
    moved = heartbeat(0, code=ErrorCode.NOT_COORDINATOR)
    nobody = FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, node_id=-1, coordinators=[])
    here = FindCoordinatorResponse(node_id=1, coordinators=[])
    cluster.answer(FindCoordinatorRequest, here, nobody, here)
    cluster.answer(ShareGroupHeartbeatRequest, moved, heartbeat(1, [0]))
    await alive_until(sharer.keep_alive(), lambda: bool(sharer.places))
    assert len(cluster.requests(FindCoordinatorRequest)) == 3


@pytest.mark.parametrize("failure", [TOO_LATE, LOST])
async def test_a_coordinator_that_does_not_answer_is_looked_for_again(
    cluster: ScriptedCluster, sharer: ShareMembership, failure: Exception
) -> None:
    cluster.answer(ShareGroupHeartbeatRequest, failure, heartbeat(1, [0]))
    await alive_until(sharer.keep_alive(), lambda: bool(sharer.places))
    assert len(cluster.requests(FindCoordinatorRequest)) == 2


async def test_a_coordinator_that_stays_away_ends_the_command(
    cluster: ScriptedCluster, sharer: ShareMembership
) -> None:
    began_ms = cluster.links.clock.time_ms
    cluster.answer(ShareGroupHeartbeatRequest, heartbeat(0, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    with pytest.raises(CoordinatorAway, match="group workers: COORDINATOR_LOAD_IN_PROGRESS"):
        await alive_until(sharer.keep_alive(), lambda: False)
    assert GIVE_UP_MS <= cluster.links.clock.time_ms - began_ms <= GIVE_UP_MS + 3 * TIMEOUT_MS


async def test_a_member_that_lost_an_answer_joins_again(cluster: ScriptedCluster, member: Membership) -> None:
    cluster.answer(JoinGroupRequest, TOO_LATE, joined)
    cluster.answer(SyncGroupRequest, LOST, synced)
    (place,) = await member.join()
    assert (place.topic, place.partition) == ("orders", 0)
    assert not member.must_rejoin


async def test_a_member_lives_on_while_its_coordinator_is_away(cluster: ScriptedCluster, member: Membership) -> None:
    await member.join()
    cluster.answer(HeartbeatRequest, TOO_LATE, LOST, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    await alive_until(member.keep_alive(), lambda: member.must_rejoin)


async def test_a_leader_rebalances_once_a_topic_is_there(cluster: ScriptedCluster, member: Membership) -> None:
    cluster.partitions.clear()
    assert await member.join() == []
    cluster.partitions["orders"] = 2
    await alive_until(member.keep_alive(), lambda: member.must_rejoin)
    assert len(await member.join()) == 2


async def test_a_leader_rebalances_once_a_topic_has_grown(cluster: ScriptedCluster, member: Membership) -> None:
    assert len(await member.join()) == 1
    cluster.partitions["orders"] = 2
    await alive_until(member.keep_alive(), lambda: member.must_rejoin)
    assert len(await member.join()) == 2


async def test_who_does_not_lead_leaves_topics_to_the_leader(cluster: ScriptedCluster, member: Membership) -> None:
    def led_by_another(request: object) -> JoinGroupResponse:
        answer = joined(request)
        answer.leader, answer.members = "another", []
        return answer

    cluster.answer(JoinGroupRequest, led_by_another)
    cluster.answer(SyncGroupRequest, SyncGroupResponse(error_code=0, assignment=b""))
    assert await member.join() == []
    await alive_until(member.keep_alive(), lambda: len(cluster.requests(HeartbeatRequest)) > 50)
    assert all(not request.topics for request in cluster.requests(MetadataRequest))


async def test_a_member_leaves_whatever_its_coordinator_says(cluster: ScriptedCluster, member: Membership) -> None:
    await member.join()
    cluster.answer(LeaveGroupRequest, TOO_LATE)
    await member.leave()
    assert len(cluster.requests(LeaveGroupRequest)) == 1


async def test_a_cluster_whose_brokers_are_all_fenced_is_waited_for(cluster: ScriptedCluster) -> None:
    nobody = MetadataResponse(brokers=[], topics=[])
    cluster.answer(MetadataRequest, nobody, nobody, cluster.metadata)
    assert await cluster.client.nodes() == [1]


async def test_a_cluster_whose_brokers_stay_fenced_is_an_error(cluster: ScriptedCluster) -> None:
    cluster.answer(MetadataRequest, MetadataResponse(brokers=[], topics=[]))
    with pytest.raises(BrokerUnreachable, match="all brokers are fenced"):
        await cluster.client.nodes()
    assert cluster.links.placed == []


async def test_a_request_to_a_broker_that_has_moved_may_be_repeated(cluster: ScriptedCluster) -> None:
    cluster.answer(HeartbeatRequest, ConnectionClosed("127.0.0.1:9092", "this side closed the connection"))
    with pytest.raises(BrokerUnreachable, match=r"broker 1 is no longer at 127\.0\.0\.1:9092"):
        await cluster.client.node(1, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), HeartbeatResponse)


def test_who_has_nothing_to_read_is_told_once_why() -> None:
    clock, notes = ManualClock(), list[str]()
    empty_handed = EmptyHanded(clock, notes.append, "workers", "odradek share describe")
    for partitions in (0, 0, 1, 0, 0, 0, 0, 0):
        clock.advance(4_000)
        empty_handed.look(partitions)
    (note,) = notes
    assert "`odradek share describe workers`" in note


class Failing(Exception):
    """A cluster that rejects every request."""


@pytest.mark.parametrize(("kind", "last_step"), [(GroupConsumer, "_commit"), (ShareConsumer, "_close")])
async def test_a_member_leaves_also_where_its_last_step_fails(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch, kind: Any, last_step: str
) -> None:
    """Otherwise the other members would wait until its session ends."""
    options = SimpleNamespace(group="g", topics=["t"], count=0, isolation="read_committed", exit_at_end=False)
    session: Any = SimpleNamespace(cluster=cluster.client, options=options, output=SimpleNamespace(note=print))
    consumer = kind(session, print) if kind is GroupConsumer else kind(session, print, ACCEPT, None)
    left: list[bool] = []

    async def fail() -> None:
        raise Failing

    async def leave() -> None:
        left.append(True)

    monkeypatch.setattr(consumer, last_step, fail)
    monkeypatch.setattr(consumer._member, "leave", leave)
    with pytest.raises(Failing):
        await consumer.run()
    assert left
