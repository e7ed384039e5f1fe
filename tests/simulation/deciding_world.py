"""A controller's decisions for modelled brokers that come, go, lose power and change their ISRs.

Decisions, sessions and duties are real. Each step is decided and applied at once, unless the controller's disk is full;
leaders' proposals arrive late. Invariants: a cleanly elected leader has every committed record, and a broker whose
session has ended is fenced soon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.brokers.heartbeat import heartbeat_in_session
from coordinator.cluster.brokers.registration import register_in_session
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.duties import Duties
from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.partitions import alter_partition
from coordinator.cluster.partitions.reassignments import alter_partition_reassignments
from coordinator.cluster.record import ClusterResult
from coordinator.cluster.topics.topic import NO_LEADER, RECOVERED, RECOVERING, PartitionRegistration
from coordinator.engine.result import Ticket
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.types import TopicPartition
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import TOPIC_ID

A = TypeVar("A")

BROKERS = (1, 2, 3, 4)
MIN_ISR = 2
PLACE = TopicPartition("orders", 0)
SESSION_MS = 900
OPTIONS = ClusterOptions(node_id=9, has_broker=False, broker_session_timeout_ms=SESSION_MS)


class Broker:
    """A broker: alive or dead, with its log, which survives its processes."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_alive = False
        self.run = 0
        self.epoch = -1
        self.stopped_in_order = False
        self.is_registered = False
        self.log: list[int] = []
        self.lost = False
        """True if the broker has lost records since it was last known to have all committed records."""


class DecidingWorld:
    """A run of the world, which is determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.disk_dice = Random(seed + 1)
        self.now_ms = 0
        self.is_full = False
        """True if the controller's disk is full."""
        self.stale: tuple[int, int] | None = None
        """The broker whose session ended first, and the time since when the disk has had space to store its fencing."""
        self.image = Image("the-cluster")
        self.rules = ConfigRules(OPTIONS.node_id)
        self.sessions = BrokerSessions(SESSION_MS, OPTIONS.own_broker_id, lambda: self.image.offset)
        self.duties = Duties(OPTIONS, self.rules, self.sessions, lambda: self.now_ms)
        self.duties.begin(0)
        self.brokers = {broker_id: Broker(broker_id) for broker_id in BROKERS}
        self.fetched: dict[int, tuple[int, int]] = {}
        """The progress of each follower as the leader knows it, and the epoch in which the follower fetched."""
        self.committed: list[int] = []
        self.proposals: list[AlterPartitionRequest] = []
        """The AlterPartition that each leader waits for."""
        self.copies: list[AlterPartitionRequest] = []
        """Copies of requests, which arrive a second time."""
        self.counts: Counter[str] = Counter()
        self.served_epoch = -1
        self._next_record = 0
        given.apply(self.image, bootstrap_records())
        for broker in self.brokers.values():
            self.start(broker)
            self.beat(broker)
        replicas = (1, 2, 3)
        topic = given.topic("orders", replicas=replicas, isr=replicas, leader=1)
        given.apply(self.image, [*topic, given.topic_config("orders", "min.insync.replicas", str(MIN_ISR))])

    @property
    def partition(self) -> PartitionRegistration:
        partition = self.image.partition(PLACE)
        assert partition is not None
        return partition

    def submit(self, decision: Callable[[Ticket[A]], ClusterResult]) -> A | None:
        """Carries out a decision. Returns its answer; None if the request is rejected, or can't be written."""
        try:
            result = decision(Ticket())
            self.carry_out(result)
        except KafkaError as error:
            self.counts[error.code.name] += 1
            return None
        ((_, answer),) = result.replies
        return answer  # type: ignore[return-value]  # the reply to a ticket has the ticket's type

    def carry_out(self, result: ClusterResult) -> None:
        """Raises KafkaError if the records can't be written."""
        before = self.partition if self.image.topic("orders") is not None else None
        if result.records and self.is_full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        given.apply(self.image, result.records)
        for effect in result.effects:
            effect()
        if before is not None:
            self.check(before, self.partition)
            self.check_leader()

    # What must hold

    def check(self, before: PartitionRegistration, after: PartitionRegistration) -> None:
        self.check_lists(after)
        if after.leader == before.leader and after.leader_epoch == before.leader_epoch:
            return
        assert after.leader_epoch > before.leader_epoch, "two leaders in one epoch"
        self.fetched.clear()
        if after.leader == NO_LEADER:
            self.counts["offline"] += 1
            return
        assert self.image.brokers[after.leader].active, "a broker leads that is fenced or stops"
        self.counts["elected"] += 1

    def check_leader(self) -> None:
        """Checks the leader once in each leader epoch, when it begins to lead. A leader that has died before is not
        checked."""
        leader, partition = self.leader(), self.partition
        if leader is None or partition.leader_epoch == self.served_epoch:
            return
        self.served_epoch = partition.leader_epoch
        differing = (at for at, record in enumerate(self.committed) if leader.log[at : at + 1] != [record])
        length = next(differing, len(self.committed))
        if partition.leader_recovery_state == RECOVERING:
            self.counts["unclean"] += 1
            del self.committed[length:]
        assert length >= len(self.committed), "a committed record is lost by a clean election"

    def check_lists(self, partition: PartitionRegistration) -> None:
        isr, elr, replicas = set(partition.isr), set(partition.elr), set(partition.replicas)
        assert partition.leader == NO_LEADER or partition.leader in isr, "a leader is not in sync"
        assert isr <= replicas, "one is in sync that is no replica"
        assert elr <= replicas, "one is eligible that is no replica"
        assert not isr & elr, "one is in sync and eligible"
        assert not elr or len(isr) < MIN_ISR, "some are eligible though enough are in sync"
        assert len(partition.directories) in (0, len(replicas)), "directories are of other replicas"
        for broker_id in isr | elr:
            broker = self.brokers[broker_id]
            if not broker.lost and self.image.brokers.get(broker_id) is not None:
                assert broker.log[: len(self.committed)] == self.committed, "one is in sync or eligible that is not"

    def check_sessions(self) -> None:
        """Checks that no broker counts as alive for long after its session has ended, if the disk has room."""
        stale = self.sessions.stale(self.now_ms)
        if stale is None or self.is_full:
            self.stale = None
        elif self.stale is None or self.stale[0] != stale:
            self.stale = stale, self.now_ms
        else:
            assert self.now_ms - self.stale[1] <= SESSION_MS, "a broker without a session is not fenced"

    # Brokers

    def start(self, broker: Broker) -> None:
        """Registers a new process; the registration is rejected as long as the last process may be alive."""
        broker.run += not broker.is_alive
        broker.is_alive = True
        request = given.registration(
            broker.broker_id,
            incarnation_id=f"{broker.broker_id}-{broker.run}".encode().ljust(16, b"."),
            log_dirs=[f"dir-{broker.broker_id}".encode().ljust(16, b".")],
            previous_broker_epoch=broker.epoch if broker.stopped_in_order else -1,
        )
        response = self.submit(
            lambda ticket: register_in_session(
                self.image, request, ticket, self.rules, self.sessions, OPTIONS.node_id, self.now_ms
            )
        )
        if response is not None:
            broker.epoch, broker.is_registered = response.broker_epoch, True
            broker.stopped_in_order = False

    def beat(self, broker: Broker, *, want_shut_down: bool = False) -> None:
        request = given.heartbeat(self.image, broker.broker_id, broker_epoch=broker.epoch)
        request.want_shut_down = want_shut_down
        response = self.submit(
            lambda ticket: heartbeat_in_session(self.image, request, ticket, self.rules, self.sessions, self.now_ms)
        )
        if response is not None and response.should_shut_down:
            self.counts["stopped in order"] += 1
            broker.is_alive = broker.is_registered = False
            broker.stopped_in_order = True

    def die(self, broker: Broker, *, power: bool) -> None:
        broker.is_alive = broker.is_registered = broker.stopped_in_order = False
        if power:
            cut = self.dice.randint(0, len(broker.log))
            broker.lost = broker.lost or cut < len(broker.log)
            del broker.log[cut:]
        self.counts["power" if power else "killed"] += 1

    # Records

    def leader(self) -> Broker | None:
        broker = self.brokers.get(self.partition.leader)
        return broker if broker is not None and broker.is_alive and broker.is_registered else None

    def append(self) -> None:
        leader = self.leader()
        if leader is not None:
            self._next_record += 1
            leader.log.append(self._next_record)

    def replicate(self, follower: Broker) -> None:
        """Lets a follower fetch everything that the leader has. The leader knows the follower's present end only by its
        next fetch."""
        leader = self.leader()
        if leader is None or leader is follower or not (follower.is_alive and follower.is_registered):
            return
        follower.log = list(leader.log)
        follower.lost = False
        self.fetched[follower.broker_id] = (len(leader.log), follower.epoch)
        self.commit()

    def commit(self) -> None:
        leader, isr = self.leader(), self.partition.isr
        if leader is None or len(isr) < MIN_ISR or leader.lost:
            return
        maximal = {*isr, *self.pending()} - {leader.broker_id}
        ends = [len(leader.log), *(self.fetched.get(one, (0, 0))[0] for one in maximal)]
        if min(ends) > len(self.committed):
            self.committed = leader.log[: min(ends)]
            self.counts["committed"] += 1

    def pending(self) -> list[int]:
        """Returns the replicas that may be in sync by now, as far as the leader knows."""
        partitions = [proposal.topics[0].partitions[0] for proposal in self.proposals]
        return [state.broker_id for data in partitions for state in data.new_isr_with_epochs]

    def propose(self) -> None:
        """Proposes some of the replicas that have all committed records, as far as the leader knows."""
        leader, partition = self.leader(), self.partition
        if leader is None or self.proposals:
            return
        caught_up = [
            one for one, (end, _) in self.fetched.items() if end >= len(self.committed) and one in partition.replicas
        ]
        isr = [one for one in caught_up if one != leader.broker_id and self.dice.random() < 0.7]
        states = [BrokerState(broker_id=one, broker_epoch=self.fetched[one][1]) for one in isr]
        states.append(BrokerState(broker_id=leader.broker_id, broker_epoch=leader.epoch))
        if partition.leader_recovery_state == RECOVERING:
            states = states[-1:]
        data = PartitionData(
            partition_index=0,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=states,
            leader_recovery_state=RECOVERED,
            partition_epoch=partition.partition_epoch,
        )
        topic = TopicData(topic_id=TOPIC_ID, partitions=[data])
        request = AlterPartitionRequest(broker_id=leader.broker_id, broker_epoch=leader.epoch, topics=[topic])
        self.proposals.append(request)

    def deliver(self) -> None:
        """Delivers a proposal to the controller: late, never, or a second time."""
        if self.copies and self.dice.random() < 0.3:
            self.ask(self.copies.pop(self.dice.randrange(len(self.copies))))
        elif self.proposals:
            proposal = self.proposals.pop()
            if self.dice.random() < 0.3:
                self.copies.append(proposal)
            if self.dice.random() < 0.9:
                self.ask(proposal)

    def ask(self, proposal: AlterPartitionRequest) -> None:
        response = self.submit(lambda ticket: alter_partition.alter_partition(self.image, proposal, ticket, self.rules))
        if response is not None:
            code = response.topics[0].partitions[0].error_code
            self.counts[f"isr {code}"] += 1

    def reassign(self) -> None:
        target: Sequence[int] | None = self.dice.sample(BROKERS, self.dice.choice([2, 3]))
        if self.partition.reassigning and self.dice.random() < 0.3:
            target = None
        one = ReassignablePartition(partition_index=0, replicas=None if target is None else list(target))
        topic = ReassignableTopic(name="orders", partitions=[one])
        request = AlterPartitionReassignmentsRequest(timeout_ms=1, topics=[topic])
        self.submit(lambda ticket: alter_partition_reassignments(self.image, request, ticket, self.rules))

    # Steps

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        broker = self.brokers[self.dice.choice(BROKERS)]
        chance = self.dice.random()
        if chance < 0.45:
            self.append() if chance < 0.15 else self.replicate(broker)
        elif chance < 0.6:
            self.deliver() if self.proposals else self.propose()
        elif chance < 0.75:
            self.pass_time(self.dice.choice([10, 100, 300]))
        elif chance < 0.76:
            self.reassign()
        elif broker.is_alive:
            if not broker.is_registered:
                self.start(broker)
            elif chance < 0.79:
                self.die(broker, power=self.dice.random() < 0.5)
            else:
                self.beat(broker, want_shut_down=chance < 0.82)
        elif chance < 0.9:
            self.start(broker)

    def pass_time(self, by_ms: int) -> None:
        """Advances the time; live brokers send their heartbeats, unless they are slow."""
        self.now_ms += by_ms
        self.is_full = self.disk_dice.random() < (0.95 if self.is_full else 0.02)
        for broker in self.brokers.values():
            if broker.is_alive and broker.is_registered and self.dice.random() < 0.8:
                self.beat(broker)
        while (duty := self.duties.due(self.image, self.now_ms)) is not None:
            result, more = duty.decide(self.image, self.now_ms)
            try:
                self.carry_out(result)
            except KafkaError:
                self.counts["KAFKA_STORAGE_ERROR"] += 1
                self.duties.failed(duty, self.now_ms)
                continue
            self.duties.done(duty, self.now_ms, more=more)
            self.counts[duty.name] += 1
        self.check_sessions()


def simulate(seed: int, steps: int, make: Callable[[int], DecidingWorld] = DecidingWorld) -> DecidingWorld:
    """Simulates this number of steps, and returns the world."""
    world = make(seed)
    world.run(steps)
    return world
