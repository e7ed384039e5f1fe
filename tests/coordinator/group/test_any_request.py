"""Sends random requests to a shard of groups at any time: each is answered or rejected, without other effects."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from coordinator.group import groups
from coordinator.group import requests as classic
from coordinator.group.consumer import describe as consumer_describe
from coordinator.group.consumer import heartbeat as consumer_heartbeat
from coordinator.group.consumer.member import Member
from coordinator.group.consumer.patterns import Matched, patterns_matched
from coordinator.group.offsets import commit as offset_commit
from coordinator.group.offsets import delete as offset_delete
from coordinator.group.offsets import fetch as offset_fetch
from coordinator.group.records import EndTransaction, GroupResult
from coordinator.group.regex import Resolved
from coordinator.group.share import describe as share_describe
from coordinator.group.share import heartbeat as share_heartbeat
from coordinator.group.share import initialization as share_initialization
from coordinator.group.share import offsets as share_offsets
from coordinator.group.share.heartbeat import HeartbeatResult
from coordinator.group.share.initialization import Initialize
from coordinator.group.share.offsets import Wanted
from coordinator.group.state import Client, GroupState
from coordinator.group.streams import describe as streams_describe
from coordinator.group.streams import heartbeat as streams_heartbeat
from coordinator.group.streams.member import StreamsMember
from protocol.consumer_protocol import ConsumerProtocolSubscription, write
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.messages.offset_fetch import OffsetFetchRequestGroup
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds
from protocol.messages.sync_group import SyncGroupRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.coordinator.any_request import AnyRequest, answered_or_refused, each_accepted
from tests.coordinator.decisions import decisions
from tests.coordinator.group.streams.world import topology as streams_topology
from tests.coordinator.group.world import Groups

SEEDS = 40  # some seconds
STEPS = 300
FAILED_APPENDS = 0.05

GROUPS = ("classic", "consumer", "share", "streams", "any", "")
"""The groups of the test; the first four mostly get requests of their own protocol."""


class Row(NamedTuple):
    """A request, the function that decides it, and the last version of its API."""

    name: str
    request: type
    decide: Callable[..., GroupResult]
    last_version: int
    home: str
    """The group that usually gets the request."""


def list_groups(state: GroupState, request: ListGroupsRequest, *rest: Any) -> GroupResult:
    states, types = frozenset(request.states_filter), frozenset(request.types_filter)
    wanted = groups.GroupFilter(states, types, list(state.groups))
    return groups.list_groups(state, wanted, *rest)


TABLE = (
    Row("requests.join_group", JoinGroupRequest, classic.join_group, 9, "classic"),
    Row("requests.join_group", JoinGroupRequest, classic.join_group, 9, "consumer"),
    Row("requests.sync_group", SyncGroupRequest, classic.sync_group, 5, "classic"),
    Row("requests.heartbeat", HeartbeatRequest, classic.heartbeat, 4, "classic"),
    Row("requests.leave_group", LeaveGroupRequest, classic.leave_group, 5, "classic"),
    Row("consumer.heartbeat.heartbeat", ConsumerGroupHeartbeatRequest, consumer_heartbeat.heartbeat, 1, "consumer"),
    Row("consumer.heartbeat.heartbeat", ConsumerGroupHeartbeatRequest, consumer_heartbeat.heartbeat, 1, "classic"),
    Row("share.heartbeat.heartbeat", ShareGroupHeartbeatRequest, share_heartbeat.heartbeat, 1, "share"),
    Row("streams.heartbeat.heartbeat", StreamsGroupHeartbeatRequest, streams_heartbeat.heartbeat, 1, "streams"),
    Row("offsets.commit.commit", OffsetCommitRequest, offset_commit.commit, 10, "classic"),
    Row(
        "offsets.commit.commit_transactional", TxnOffsetCommitRequest, offset_commit.commit_transactional, 6, "consumer"
    ),
    Row("offsets.delete.delete", OffsetDeleteRequest, offset_delete.delete, 0, "any"),
    Row("groups.group_ids", ListGroupsRequest, groups.group_ids, 5, "any"),
    Row("groups.list_groups", ListGroupsRequest, list_groups, 5, "any"),
)


INSIDE = {
    "classic.heartbeat.heartbeat", "classic.join.join", "classic.leave.leave", "classic.sync.sync",
    "consumer.classic_members.heartbeat", "consumer.classic_members.join", "consumer.classic_members.leave",
    "consumer.classic_members.sync",
}  # fmt: skip
"""The decisions that `coordinator.group.requests` chooses from, by the type of the group."""


class Hostile:
    """A shard, clients that send anything, and a clock."""

    def __init__(self, seed: int) -> None:
        self.world = Groups(
            group_max_size=3, group_consumer_max_size=3, group_share_max_size=3, group_streams_max_size=3
        )
        self.topic_ids = [self.world.create_topic(name, count) for name, count in (("t", 3), ("u", 2))]
        subscription = write(ConsumerProtocolSubscription(topics=["t", "u"]), 1)
        self.any = AnyRequest(
            seed,
            {
                "group_id": GROUPS,
                "member_id": ("", "nobody", "m1", "m2", "m3"),
                "group_instance_id": ("i1", "i2"),
                "instance_id": ("i1", "i2"),
                "generation_id": (-1, 0, 1, 2, 3),
                "member_epoch": (0, 0, 0, -1, -2, 1, 2, 3),
                "generation_id_or_member_epoch": (-1, 0, 1, 2, 3),
                "protocol_type": ("consumer", "consumer", "consumer", "connect", ""),
                "protocol_name": ("range", "sticky", None),
                "name": ("t", "u", "absent", "range", "range", "sticky", ""),
                "subscribed_topic_names": ("t", "u", "absent", ""),
                "subscribed_topic_regex": ("t.*", "[", "", "(a+)+b"),
                "server_assignor": ("uniform", "range", "none"),
                "topic_id": (*self.topic_ids, bytes(16)),
                "topic_names": ("t", "u", "absent"),
                "metadata": (subscription, subscription, b"", b"\x00\x03", bytes(8)),
                "partition_index": (0, 1, 2, -1),
                "partition_indexes": (0, 1, 2, -1),
                "partitions": (0, 1, 2, -1),
                "session_timeout_ms": (6_000, 10_000, 300_000, 1),
                "rebalance_timeout_ms": (1_000, 5_000, 60_000, -1),
                "producer_id": (1, 2),
                "producer_epoch": (0, 1),
                "committed_metadata": ("", "x" * 5000, "note"),
            },
        )
        self.random: Random = self.any.random
        self.world.is_doubling = True
        self.world.append_fails = lambda: self.random.random() < FAILED_APPENDS
        self.requested = ""
        self.accepted: set[str] = set()

    @property
    def state(self) -> GroupState:
        return self.world.shard.state

    def step(self) -> None:
        self.random.choice((*[self.request] * 12, self.administer, self.pass_time, self.pass_time))()

    def request(self) -> None:
        row = self.random.choice(TABLE)
        fixed: dict[str, Any] = {}
        if any(name == "group_id" for name in row.request.__wire__) and self.random.random() < 0.8:  # type: ignore[attr-defined]
            fixed["group_id"] = row.home
        request: Any = self.any.make(row.request, **fixed)
        if self.random.random() < 0.7:
            self.inform(request)
        client = Client(self.random.randint(0, row.last_version), "client", "/host")
        self.decide(row.name, request, lambda ticket, now_ms: row.decide(self.state, request, client, ticket, now_ms))

    def inform(self, request: Any) -> None:
        """Changes the request to that of an existing member, valid in most respects."""
        group: Any = self.state.groups.get(getattr(request, "group_id", ""))
        if isinstance(request, JoinGroupRequest):
            request.protocol_type = "consumer"
            strategies = self.random.sample(("range", "sticky"), self.random.randint(1, 2))
            metadata = self.any.pools["metadata"][0]
            request.protocols = [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in strategies]
            request.session_timeout_ms = self.random.choice((6_000, 60_000))
        if isinstance(request, StreamsGroupHeartbeatRequest):
            self.describe_topology(request)
        if group is None or not hasattr(request, "member_id"):
            return
        waiting = getattr(group, "pending_joins", ())
        ids = [*group.members, *waiting]
        if not ids:
            return
        request.member_id = member_id = self.random.choice(ids)
        member: Any = group.members.get(member_id)
        if hasattr(request, "group_instance_id"):
            request.group_instance_id = getattr(member, "instance_id", None)
            if self.random.random() < 0.2 and isinstance(request, JoinGroupRequest):
                request.member_id = ""
        epoch = getattr(member, "member_epoch", getattr(group, "generation", 0))
        for name in ("generation_id", "member_epoch", "generation_id_or_member_epoch"):
            if hasattr(request, name):
                setattr(request, name, epoch)
        if isinstance(request, SyncGroupRequest):
            request.protocol_type = request.protocol_name = None
        if isinstance(request, ConsumerGroupHeartbeatRequest) and isinstance(member, Member):
            self.acknowledge(request, member)
        if isinstance(request, StreamsGroupHeartbeatRequest) and isinstance(member, StreamsMember):
            self.acknowledge_tasks(request, member)

    def acknowledge(self, request: ConsumerGroupHeartbeatRequest, member: Any) -> None:
        """Marks the assignment as owned, as the next heartbeat of a correct client does."""
        request.instance_id, request.server_assignor, request.subscribed_topic_regex = member.instance_id, None, None
        request.subscribed_topic_names = self.random.choice((None, ["t"], ["t", "u"]))
        request.topic_partitions = [
            TopicPartitions(topic_id=topic_id, partitions=list(indexes))
            for topic_id, indexes in member.assigned.items()
        ]

    def describe_topology(self, request: StreamsGroupHeartbeatRequest) -> None:
        """Makes the request that of a member that joins with a valid topology."""
        request.member_epoch, request.instance_id = 0, self.random.choice((None, None, "i1", "i2"))
        request.topology = streams_topology(sources=("t", "u")[: self.random.randint(1, 2)])
        request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
        request.process_id = self.random.choice(("p1", "p2"))

    def acknowledge_tasks(self, request: StreamsGroupHeartbeatRequest, member: StreamsMember) -> None:
        """Marks the tasks as owned, as the next heartbeat of a correct client does."""
        request.instance_id, request.topology, owned = member.instance_id, None, member.assigned.assignment
        request.active_tasks = owned.active.ids(TaskIds)
        request.standby_tasks = owned.standby.ids(TaskIds)
        request.warmup_tasks = owned.warmup.ids(TaskIds)

    def administer(self) -> None:
        group_id, random = self.random.choice(GROUPS), self.random
        client = Client(1, "client", "/host")
        topic_ids = frozenset(random.sample(self.topic_ids, random.randint(0, 2)))
        initialize = Initialize(group_id, 1, {topic_id: {0: -1} for topic_id in topic_ids})
        names = random.choices(("t", "u", "absent"), k=random.randint(0, 3))
        fetch = self.any.make(OffsetFetchRequestGroup)
        marker = EndTransaction(random.randint(1, 2), random.randint(0, 1), random.random() < 0.5, 0)
        stable, starts = random.random() < 0.5, self.starts(names)
        resolved = {pattern: Resolved(frozenset(names), 1, self.world.now_ms) for pattern in ("t.*", "")}
        work: dict[str, Callable[[Any, int], GroupResult]] = {
            "groups.delete_groups": lambda t, now: groups.delete_groups(
                self.state, [group_id, group_id], client, t, now
            ),
            "groups.describe_classic": lambda t, now: groups.describe_classic(
                self.state, [group_id, group_id], client, t, now
            ),
            "consumer.describe.describe": lambda t, now: consumer_describe.describe(
                self.state, group_id, client, t, now
            ),
            "streams.describe.describe": lambda t, now: streams_describe.describe(self.state, group_id, client, t, now),
            "share.describe.describe": lambda t, now: share_describe.describe(self.state, group_id, client, t, now),
            "offsets.fetch.fetch": lambda t, now: offset_fetch.fetch(self.state, fetch, stable, t, now),
            "share.initialization.initialized": lambda t, now: share_initialization.initialized(
                self.state, initialize, None, t, now
            ),
            "share.initialization.uninitialized": lambda t, now: share_initialization.uninitialized(
                self.state, initialize, None, t, now
            ),
            "share.offsets.begin_delete": lambda t, now: share_offsets.begin_delete(
                self.state, group_id, names, t, now
            ),
            "share.offsets.begin_delete_all": lambda t, now: share_offsets.begin_delete_all(
                self.state, group_id, None, t, now
            ),
            "share.offsets.deleted": lambda t, now: share_offsets.deleted(self.state, group_id, topic_ids, t, now),
            "share.offsets.initialized_partitions": lambda t, now: share_offsets.initialized_partitions(
                self.state, group_id, None, t, now
            ),
            "share.offsets.alter": lambda t, now: share_offsets.alter(self.state, group_id, starts, t, now),
            "shard.end_transaction": lambda t, now: self.world.shard.end_transaction(marker, t, now),
            "shard.topics_deleted": lambda t, now: self.world.shard.topics_deleted({"u": self.topic_ids[1]}, t, now),
            "consumer.patterns.patterns_matched": lambda t, now: patterns_matched(
                self.state, Matched(group_id, resolved), client, t, now
            ),
        }
        name = random.choice(list(work))
        self.decide(name, group_id, work[name])

    def starts(self, names: list[str]) -> Wanted:
        return {name: {} if self.random.random() < 0.2 else {self.random.choice((0, 1, -1)): 5} for name in names}

    def pass_time(self) -> None:
        """Advances the time; deadlines expire late."""
        self.requested = "time"
        world = self.world
        world.now_ms += self.random.choice((1, 1_000, 1_000, 3_000, 6_000, 60_000, 3_600_000))
        if self.random.random() < 0.1:
            world.reload()
        world.advance(0)
        world.match_patterns()

    def decide(self, name: str, requested: object, decision: Callable[[Any, int], GroupResult]) -> None:
        self.requested = f"{name} {requested}"
        if self.world.send(decision, self.learn).error is None:
            self.accepted.add(name)

    def learn(self, answer: object) -> None:
        if isinstance(answer, HeartbeatResult | streams_heartbeat.StreamsHeartbeatResult):
            answer = answer.response
        for name in ("member_id", "generation_id", "member_epoch"):
            value = getattr(answer, name, None)
            if value is not None:
                self.any.learn(name, value)
                if name != "member_id":
                    self.any.learn("generation_id_or_member_epoch", value)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_shard_of_groups_answers_or_refuses_whatever_is_asked(seed: int) -> None:
    answered_or_refused(Hostile(seed), seed, STEPS)


def test_each_decision_is_made_twice_and_accepted() -> None:
    each_accepted(Hostile, decisions("group") - INSIDE, SEEDS, STEPS)
