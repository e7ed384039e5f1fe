"""Consumers of one group on a virtual clock, driven by a seed: they join, stall, die, send wrong data, lose answers and
come back, while topics grow, come and go, and the broker is killed and loads the group again."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress

from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from protocol.types import Uuid
from tests.coordinator.group.world import GROUP, Groups, assigned

SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
TOPICS = ("apple", "apricot", "banana", "berry")
PATTERNS = ("a.*", "b.*", ".*r.*")

Owned = dict[Uuid, set[int]]

START_OVER = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}
WAIT = {ErrorCode.UNRELEASED_INSTANCE_ID}


class Consumer:
    """A client, and its own view of its state."""

    def __init__(self, simulation: Simulation, member_id: str, instance_id: str | None) -> None:
        self.simulation = simulation
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: Owned = {}
        self.to_own: Owned | None = None
        """The last assignment, until the client has given up all partitions that are not in it."""
        self.full = True
        """True if the next heartbeat must have all fields: after joining, or after a lost answer."""
        self.due_ms = simulation.groups.now_ms
        self.heard_ms = simulation.groups.now_ms
        self.stalled_until_ms = 0
        self.choose()

    def choose(self) -> None:
        dice = self.simulation.dice
        self.topics = dice.sample(TOPICS, dice.randint(0, len(TOPICS)))
        self.pattern = dice.choice(PATTERNS) if not self.topics or dice.random() < 0.2 else ""
        self.full = True

    @property
    def believes(self) -> bool:
        """True if the client has reason to believe that it still owns its partitions."""
        return self.epoch > 0 and self.simulation.groups.now_ms < self.heard_ms + SESSION_MS

    def step(self) -> None:
        groups, dice = self.simulation.groups, self.simulation.dice
        if self.to_own is not None and dice.random() < 0.7:
            self.owned, self.to_own = self.to_own, None
            self.full = True
        if groups.now_ms < self.stalled_until_ms or groups.now_ms < self.due_ms:
            return
        self.due_ms = groups.now_ms + HEARTBEAT_MS
        try:
            response = self.heartbeat()
        except KafkaError as error:
            self.on_error(error.code)
            return
        if dice.random() < self.simulation.loss:
            self.full = True
        else:
            self.take(response)

    def heartbeat(self) -> ConsumerGroupHeartbeatResponse:
        tells = self.full or self.epoch == 0
        return self.simulation.groups.heartbeat(
            self.member_id,
            self.epoch,
            owned=self.owned if tells else None,
            topics=self.topics if tells else None,
            rebalance_timeout_ms=30_000 if tells else -1,
            subscribed_topic_regex=self.pattern if tells else None,
            instance_id=self.instance_id,
        )

    def on_error(self, code: ErrorCode) -> None:
        if code in START_OVER:
            self.epoch, self.owned, self.to_own = 0, {}, None
        else:
            assert code in WAIT, code

    def take(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.heard_ms = self.simulation.groups.now_ms
        self.epoch = response.member_epoch
        self.full = False
        target = assigned(response)
        if target is not None:
            self.to_own = {topic_id: set(partitions) for topic_id, partitions in target.items()}
            retained = {one: partitions & self.to_own.get(one, set()) for one, partitions in self.owned.items()}
            self.owned = {one: partitions for one, partitions in retained.items() if partitions}

    def leave(self, epoch: int) -> None:
        """Leaves the group, if it is a member; an error has the same effect."""
        if self.epoch > 0:
            with suppress(KafkaError):
                self.simulation.groups.heartbeat(self.member_id, epoch, instance_id=self.instance_id)


class Simulation:
    """The life of a group, from one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.groups = Groups()
        self.loss = self.dice.choice([0.0, 0.1, 0.3])
        self.consumers: list[Consumer] = []
        self._members = 0
        for name in TOPICS[:2]:
            self.groups.create_topic(name, self.dice.randint(1, 6))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step(self.dice.choice(self.EVENTS))

    def step(self, event: Callable[[Simulation], None] | None) -> None:
        self.groups.advance(self.dice.choice([0, 100, 1_000, 2_500]))
        if event is not None and self.dice.random() < 0.4:
            event(self)
        self.dice.shuffle(self.consumers)
        for consumer in self.consumers:
            consumer.step()
            self.check()
        if self.groups.match_requests and self.dice.random() < 0.5:
            self.groups.match_patterns()
        self.check()

    def settle(self) -> None:
        """Sends only heartbeats, for as long as all deadlines together."""
        self.loss = 0.0
        for consumer in self.consumers:
            consumer.stalled_until_ms = 0
        for _ in range(120):
            self.step(None)

    # Events.

    def join(self) -> None:
        self._members += 1
        instance_id = f"instance-{self._members}" if self.dice.random() < 0.3 else None
        self.consumers.append(Consumer(self, f"member-{self._members}", instance_id))

    def leave(self) -> None:
        if consumer := self.pick():
            consumer.leave(-1)
            self.consumers.remove(consumer)

    def restart(self) -> None:
        """Restarts a static member with another member id."""
        consumer = self.pick()
        if consumer is not None and consumer.instance_id is not None:
            consumer.leave(-2)
            self.consumers.remove(consumer)
            self._members += 1
            self.consumers.append(Consumer(self, f"member-{self._members}", consumer.instance_id))

    def die(self) -> None:
        if consumer := self.pick():
            self.consumers.remove(consumer)

    def stall(self) -> None:
        if consumer := self.pick():
            consumer.stalled_until_ms = self.groups.now_ms + self.dice.choice([10_000, 40_000, 60_000])

    def lie(self) -> None:
        """Sends an epoch or partitions that the member doesn't have."""
        consumer = self.pick()
        if consumer is not None and consumer.epoch > 0:
            consumer.epoch += self.dice.choice([-1, 1, 5])
            if consumer.epoch == 0:
                consumer.owned, consumer.to_own = {}, None

    def change(self) -> None:
        if consumer := self.pick():
            consumer.choose()

    def create_topic(self) -> None:
        missing = [name for name in TOPICS if name not in self.groups.topics.by_name]
        if missing:
            self.groups.create_topic(self.dice.choice(missing), self.dice.randint(1, 6))

    def delete_topic(self) -> None:
        if len(self.groups.topics.by_name) > 1:
            self.groups.delete_topic(self.dice.choice(list(self.groups.topics.by_name)))

    def grow_topic(self) -> None:
        self.groups.add_partitions(self.dice.choice(list(self.groups.topics.by_name)), self.dice.randint(1, 2))

    def kill_broker(self) -> None:
        before = self.durable_state()
        self.groups.match_requests.clear()
        self.groups.reload()
        assert self.durable_state() == before
        for consumer in self.consumers:  # a new coordinator gives them time
            consumer.heard_ms = self.groups.now_ms if consumer.believes else consumer.heard_ms

    EVENTS: tuple[Callable[[Simulation], None], ...] = (
        join, join, join, leave, restart, restart, die, stall, lie, change, create_topic, delete_topic, grow_topic,
        kill_broker,
    )  # fmt: skip

    def pick(self) -> Consumer | None:
        return self.dice.choice(self.consumers) if self.consumers else None

    # What must hold.

    @property
    def members(self) -> Mapping[str, Member]:
        group = self.groups.shard.state.groups.get(GROUP)
        return group.members if isinstance(group, ConsumerGroup) else {}

    def durable_state(self) -> object:
        group = self.groups.shard.state.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return None
        epochs = (group.epoch, group.assignment_epoch, group.assigned_at_ms, group.metadata_hash)
        counts = (group.subscriptions.by_name, group.subscriptions.by_pattern, group.subscriptions.patterns)
        return epochs, dict(group.members), dict(group.targets), group.owners, dict(group.resolved), counts

    def check(self) -> None:
        """Checks that each partition has at most one owner, according to the coordinator and to the members."""
        held: dict[tuple[Uuid, int], str] = {}
        for member in self.members.values():
            for part in (member.assigned, member.pending_revocation):
                for topic_id, epochs in part.items():
                    for index in epochs:
                        owner = held.setdefault((topic_id, index), member.member_id)
                        assert owner == member.member_id, f"{index} is of {owner} and of {member.member_id}"
        self.check_beliefs()

    def check_beliefs(self) -> None:
        """Checks that members that the coordinator knows, and that had a recent answer, own no partition together."""
        believed: dict[tuple[Uuid, int], str] = {}
        for consumer in self.consumers:
            if consumer.believes and consumer.member_id in self.members:
                for topic_id, partitions in consumer.owned.items():
                    for index in partitions:
                        other = believed.setdefault((topic_id, index), consumer.member_id)
                        assert other == consumer.member_id, f"{other} and {consumer.member_id} own {index}"

    def check_settled(self) -> None:
        """Checks that every member has converged: all partitions of subscribed topics are owned by subscribers."""
        group = self.groups.shard.state.groups.get(GROUP)
        if not self.consumers:
            assert group is None or group.is_empty
            return
        assert isinstance(group, ConsumerGroup)
        assert group.state_name == "Stable", group
        assert set(group.members) == {consumer.member_id for consumer in self.consumers}
        subscribed = {name for member in group.members.values() for name in group.topics_of(member)}
        expected = {
            (topic.topic_id, index)
            for topic in self.groups.topics.by_name.values()
            if topic.name in subscribed
            for index in topic.partitions
        }
        owned = [
            (topic_id, index)
            for consumer in self.consumers
            for topic_id, partitions in consumer.owned.items()
            for index in partitions
        ]
        assert len(owned) == len(set(owned))
        assert set(owned) == expected
        for consumer in self.consumers:
            member = group.members[consumer.member_id]
            assert consumer.owned == {one: set(partitions) for one, partitions in member.assigned.items()}
            names = {topic.name for one in consumer.owned if (topic := self.groups.topics.topic_by_id(one))}
            assert names <= group.topics_of(member)
