"""Consumers of both protocols in one group, driven by a seed: the group changes protocol as members come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator.group import requests
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.rendezvous import STABLE
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.records import AnyRecord, GroupResult
from coordinator.group.state import Client
from protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription, read
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.driver import Asked
from tests.coordinator.group.consumer.mixed import assignment, subscription
from tests.coordinator.group.consumer.simulation import TOPICS, Consumer, Owned, Simulation
from tests.coordinator.group.world import GROUP
from tests.group_requests import join_group, sync_group

SESSION_MS = 10_000
HEARTBEAT_MS = 2_000
REBALANCE_MS = 20_000

LOST = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED}
AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.INCONSISTENT_GROUP_PROTOCOL}


class ClassicConsumer:
    """A client of the classic protocol that gives up all partitions before it joins again ("eager")."""

    instance_id = None

    def __init__(self, simulation: Simulation, name: str) -> None:
        self.simulation = simulation
        self.name = name
        self.member_id = ""
        self.epoch = 0
        self.owned: Owned = {}
        self.topics = list(TOPICS)
        self.heard_ms = simulation.groups.now_ms
        self.due_ms = simulation.groups.now_ms
        self.stalled_until_ms = 0
        self.asked: Asked[Any, AnyRecord] | None = None
        """The request whose answer it waits for."""
        self.joined = False
        self.dealt = 0
        """The number of partitions that it knew when it assigned them as leader of a classic group."""

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.simulation.groups.topics.by_name.values())

    def choose(self) -> None:
        """Keeps the subscription with which it was started."""

    @property
    def believes(self) -> bool:
        return self.joined and self.simulation.groups.now_ms < self.heard_ms + SESSION_MS

    def step(self) -> None:
        groups = self.simulation.groups
        if groups.now_ms < self.stalled_until_ms:
            return
        if self.asked is not None:
            self.receive(self.asked)
        elif not self.joined or self.dealt not in (0, self.partition_count):
            self.join()
        elif groups.now_ms >= self.due_ms:
            self.due_ms = groups.now_ms + HEARTBEAT_MS
            self.ask(requests.heartbeat, self.heartbeat_request(), 4)

    def ask(self, decide: Callable[..., GroupResult], request: object, version: int) -> None:
        self.receive(self.simulation.groups.ask(decide, request, Client(version, self.name, "/127.0.0.1")))

    def receive(self, asked: Asked[Any, AnyRecord]) -> None:
        self.asked = asked if asked.waits else None
        if asked.waits:
            return
        if asked.error is not None:
            self.on_error(asked.error)
            return
        answer = asked.answer
        self.heard_ms = self.simulation.groups.now_ms
        if isinstance(answer, JoinGroupResponse) and answer.member_id:
            self.member_id = answer.member_id
        if answer.error_code:
            self.on_error(ErrorCode(answer.error_code))  # type: ignore[call-arg]
        elif isinstance(answer, JoinGroupResponse):
            self.sync(answer)
        elif isinstance(answer, SyncGroupResponse):
            self.own(answer)

    def on_error(self, code: ErrorCode) -> None:
        self.joined, self.owned = False, {}
        if code in LOST:
            self.member_id = ""
        else:
            assert code in AGAIN | {ErrorCode.MEMBER_ID_REQUIRED}, code

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=GROUP, generation_id=self.epoch, member_id=self.member_id)

    def join(self) -> None:
        self.owned, self.dealt = {}, 0
        request = join_group(
            GROUP, self.member_id, metadata=subscription(self.topics), session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS
        )
        self.ask(requests.join_group, request, 9)

    def sync(self, joined: JoinGroupResponse) -> None:
        self.epoch = joined.generation_id
        assignments = self.lead(joined) if joined.leader == self.member_id else None
        request = sync_group(
            GROUP, self.member_id, self.epoch, assignments, protocol_type="consumer", protocol_name="range"
        )
        self.ask(requests.sync_group, request, 5)

    def lead(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        """Divides the partitions among the members that subscribe to them."""
        self.dealt = self.partition_count
        given: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in joined.members}
        readers = {
            member.member_id: read(ConsumerProtocolSubscription, member.metadata).topics for member in joined.members
        }
        for name, topic in self.simulation.groups.topics.by_name.items():
            subscribed = [member_id for member_id, topics in readers.items() if name in topics]
            for index in topic.partitions:
                given[subscribed[index % len(subscribed)]].setdefault(name, []).append(index)
        return {member_id: assignment(partitions) for member_id, partitions in given.items()}

    def own(self, answer: SyncGroupResponse) -> None:
        topics = self.simulation.groups.topics.by_name
        self.joined = True
        assigned = read(ConsumerProtocolAssignment, answer.assignment).assigned_partitions if answer.assignment else []
        self.owned = {
            topics[topic.topic].topic_id: set(topic.partitions) for topic in assigned if topic.topic in topics
        }

    def leave(self, epoch: int) -> None:
        if self.member_id:
            members = [MemberIdentity(member_id=self.member_id)]
            self.ask(requests.leave_group, LeaveGroupRequest(group_id=GROUP, members=members), 5)

    def cut_off(self) -> None:
        """Loses its connection, and the answer that it waits for."""
        if self.asked is not None:
            self.asked = None
            self.joined = False


class MixedSimulation(Simulation):
    """A Simulation with fixed subscriptions and topics, which rolls from one protocol to the other."""

    consumers: list[Any]

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.groups.settings = self.groups.settings._replace(group_initial_rebalance_delay_ms=500)
        for name in TOPICS[2:]:
            self.groups.create_topic(name, self.dice.randint(1, 6))

    def join(self) -> None:
        self._members += 1
        if self.dice.random() < 0.5:
            self.consumers.append(ClassicConsumer(self, f"classic-{self._members}"))
        else:
            consumer = Consumer(self, f"member-{self._members}", None)
            consumer.topics, consumer.pattern = list(TOPICS), ""
            self.consumers.append(consumer)

    def roll(self) -> None:
        """Replaces all clients of one protocol, one by one in random order."""
        classic = self.dice.random() < 0.5
        for consumer in [one for one in self.consumers if isinstance(one, ClassicConsumer) == classic]:
            consumer.leave(-1)
            self.consumers.remove(consumer)
            self.step(None)

    def stall(self) -> None:
        if consumer := self.pick():
            consumer.stalled_until_ms = self.groups.now_ms + self.dice.choice([5_000, 15_000, 60_000])

    def kill_broker(self) -> None:
        super().kill_broker()
        for consumer in self.consumers:
            if isinstance(consumer, ClassicConsumer):
                consumer.cut_off()

    EVENTS: tuple[Callable[[Any], None], ...] = (
        join, join, join, Simulation.leave, Simulation.leave, Simulation.die, stall, roll, Simulation.grow_topic,
        kill_broker,
    )  # fmt: skip

    def check_beliefs(self) -> None:
        """Checks that no two members with their current epoch own the same partition."""
        group = self.groups.shard.state.groups.get(GROUP)
        believed: dict[object, str] = {}
        for consumer in self.consumers:
            if not consumer.believes or not self.is_current(group, consumer):
                continue
            for topic_id, partitions in consumer.owned.items():
                for index in partitions:
                    other = believed.setdefault((topic_id, index), consumer.member_id)
                    assert other == consumer.member_id, f"{other} and {consumer.member_id} own {index}"

    @staticmethod
    def is_current(group: object, consumer: Any) -> bool:
        if isinstance(group, ConsumerGroup):
            member = group.members.get(consumer.member_id)
            return member is not None and member.member_epoch == consumer.epoch
        if isinstance(group, ClassicGroup):
            return group.state is STABLE and group.generation == consumer.epoch and group.has_member(consumer.member_id)
        return False

    def check_settled(self) -> None:
        """Checks that every partition is read by exactly one member."""
        group = self.groups.shard.state.groups.get(GROUP)
        if not self.consumers:
            assert group is None or group.is_empty
            return
        assert group is not None
        assert group.state_name == "Stable", group
        kinds = {type(consumer) for consumer in self.consumers}
        assert isinstance(group, ConsumerGroup if Consumer in kinds else ClassicGroup)
        owned = [
            (topic_id, index)
            for consumer in self.consumers
            for topic_id, partitions in consumer.owned.items()
            for index in partitions
        ]
        topics = self.groups.topics.by_name.values()
        assert sorted(owned) == sorted((topic.topic_id, index) for topic in topics for index in topic.partitions)
