"""Three brokers with a replica each of one partition, a controller that elects, and a network that loses messages, from
a seed.

Leaders and followers are real (`Partition`, `coordinator.replication`, `storage`); the controller and the network are
modelled. Below the high watermark all replicas are equal byte for byte, and acknowledged records are never lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from broker.replica.partition import Partition
from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration
from coordinator.replication.fetcher import SessionEnded
from coordinator.replication.isr import Follower, Isr, IsrRules
from coordinator.replication.roles import Leading
from protocol.errors import KafkaError
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.records.building import build
from protocol.records.record import Record
from tests.simulation.follow_leader import serve_fetch, serve_offsets
from tests.simulation.follow_node import Node

START_MS = 1_700_000_000_000
STEP_MS = 7
LAG_MS = 200
NODES = (1, 2, 3)
CONVERGES_WITHIN = 400
"""Rounds without losses after which replicas that still differ will never become equal."""


class FollowWorld:
    """A run of the world; `run` raises AssertionError, or any other error."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.now_ms = START_MS
        self.nodes = {node_id: Node(node_id, self.dice) for node_id in NODES}
        self.changes = [PartitionRegistration(NODES, NODES, 1, 0, 0)]
        """All decisions of the controller."""
        self.committed: dict[int, bytes] = {}
        """Every batch that was below any broker's high watermark, by base offset."""
        self.acknowledged: dict[int, bytes] = {}
        self.values = 0
        self.counts: Counter[str] = Counter()
        self.answers: dict[int, tuple[FetchRequest, FetchResponse]] = {}
        """The answers on their way to a follower, each with its request."""
        self.forgets_unclean_stops = False
        """A fault: brokers that lost unflushed records stay in the ISR."""
        for node in self.nodes.values():
            self._start(node)

    @property
    def state(self) -> PartitionRegistration:
        """Returns the partition's state at the controller."""
        return self.changes[-1]

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.now_ms += self.dice.randrange(STEP_MS)
            name, action = self.dice.choices(ACTIONS, WEIGHTS)[0]
            self.counts[name] += 1
            action(self)
            if self.dice.random() < 0.1:
                self.check()
        self.heal()

    # Brokers

    def _live(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_alive]

    def _start(self, node: Node) -> None:
        node.disk.now_ms = self.now_ms
        node.start(self.now_ms)
        node.partition.rules = IsrRules(self._may_be_in_sync, lambda: LAG_MS, lambda at: self.nodes[at].broker_epoch)
        node.partition.propose = partial(self._propose, node)
        if self.state.leader == NO_LEADER:
            self._elect()

    def _may_be_in_sync(self, follower: Follower) -> bool:
        node = self.nodes[follower.replica_id]
        return node.is_alive and follower.broker_epoch == node.broker_epoch

    def crash(self) -> None:
        """Kills a broker; also its machine, unless no other broker has the committed records."""
        node = self.dice.choice(self._live() or [None])
        if node is None:
            return
        isr = [member for member in self.state.isr if member != node.node_id]
        power = bool(isr) and self.dice.random() < 0.6
        node.crash(power=power)
        self.answers.pop(node.node_id, None)
        stays = self.forgets_unclean_stops or not isr
        self.counts["power"] += power
        leader = NO_LEADER if self.state.leader == node.node_id else self.state.leader
        if leader != self.state.leader or not stays:
            self._change(isr=self.state.isr if stays else tuple(isr), leader=leader)
        if leader == NO_LEADER:
            self._elect()

    def restart(self) -> None:
        down = [node for node in self.nodes.values() if not node.is_alive]
        if down:
            self._start(self.dice.choice(down))

    def flush(self) -> None:
        for node in self._live()[:1]:
            node.logs.flush_due(self.now_ms)
            node.partition.log.flush(self.now_ms)
            node.logs.write_checkpoints()
            node.logs.write_high_watermarks()

    # The controller

    def _change(self, *, isr: tuple[int, ...], leader: int) -> None:
        before = self.state
        epoch = before.leader_epoch + (leader != before.leader)
        self.changes.append(PartitionRegistration(NODES, isr, leader, epoch, before.partition_epoch + 1))

    def _elect(self) -> None:
        eligible = [member for member in self.state.isr if self.nodes[member].is_alive]
        if eligible:
            self._change(isr=self.state.isr, leader=self.dice.choice(eligible))

    def move(self) -> None:
        """Elects another in-sync replica as the leader."""
        others = [one for one in self.state.isr if one != self.state.leader and self.nodes[one].is_alive]
        if others:
            self._change(isr=self.state.isr, leader=self.dice.choice(others))

    def _propose(self, node: Node, partition: Partition, isr: Isr) -> None:
        """Sends AlterPartition: it is committed at once, or rejected if the leader is outdated; the answer arrives as
        metadata."""
        role = partition.role
        if not isinstance(role, Leading) or role.partition_epoch != self.state.partition_epoch:
            return
        proposed = tuple(sorted(isr.proposed))
        if self.state.leader != node.node_id or any(not self.nodes[member].is_alive for member in isr.expanding):
            return
        partition.role = role.with_isr(isr)
        self._change(isr=proposed, leader=self.state.leader)

    def tell(self) -> None:
        """Delivers the next change to a broker, perhaps late."""
        for node in self._live():
            if node.metadata + 1 < len(self.changes) and self.dice.random() < 0.5:
                node.metadata = len(self.changes) - 1 if node.metadata < 0 else node.metadata + 1
                node.take(self.changes[node.metadata], self.now_ms)

    # Clients

    def produce(self) -> None:
        """Produces to a broker that believes that it leads."""
        for node in self._live():
            if isinstance(node.partition.role, Leading) and self.dice.random() < 0.7:
                self._produce(node)

    def _produce(self, node: Node) -> None:
        partition = node.partition
        records = []
        for _ in range(self.dice.randint(1, 3)):
            self.values += 1
            records.append(Record(0, self.now_ms, b"key", f"value {self.values}".encode() * self.dice.choice((1, 5))))
        try:
            appended = partition.append(memoryview(build(records)), self.now_ms, for_all=True)
        except KafkaError:
            return
        base = appended.base_offset
        (written,) = [batch for at, batch in node.batches(partition.log_end_offset) if at == base]
        partition.when_committed(appended.last_offset + 1, partial(self._acknowledge, base, written))

    def _acknowledge(self, base: int, written: bytes, error: KafkaError | None) -> None:
        if error is None:
            self.acknowledged[base] = written
            self.counts["acknowledged"] += 1

    def delete_records(self) -> None:
        """Moves the start of the leader's log forward, and deletes its segments."""
        for node in self._live():
            partition = node.partition
            if isinstance(partition.role, Leading) and partition.high_watermark > partition.log_start_offset:
                partition.advance_log_start(self.dice.randint(partition.log_start_offset, partition.high_watermark))
                partition.log.apply_retention(self.now_ms)

    def shrink(self) -> None:
        for node in self._live():
            node.partition.shrink_isr(self.now_ms)

    # The network

    def fetch(self) -> None:
        """Sends a follower's next request, and the leader's answer, unless a message is lost."""
        node = self.dice.choice(self._live() or [None])
        if node is not None and node.request is None and node.next_request(self.now_ms):
            self._serve(node, lost=self.dice.random() < 0.1)

    def _serve(self, node: Node, *, lost: bool) -> None:
        leader = self.nodes.get(node.leader_id)
        if lost or leader is None or not leader.is_alive or node.request is None:
            self._lose(node)
        else:
            self.answers[node.node_id] = node.request, serve_fetch(leader, node.request, self.now_ms)

    def answer(self) -> None:
        """Delivers an answer, or loses it."""
        if self.answers:
            node_id = self.dice.choice([*self.answers])
            self._deliver(self.nodes[node_id], *self.answers.pop(node_id), lost=self.dice.random() < 0.1)

    def _deliver(self, node: Node, request: FetchRequest, response: FetchResponse, *, lost: bool) -> None:
        if node.request is not request:
            return  # it fetches from another leader by now, over another connection
        if lost:
            self._lose(node)
            return
        node.request = None
        try:
            node.carry_out(node.fetcher.fetched(response, self.now_ms), self.now_ms)
        except SessionEnded:
            self.counts["session ended"] += 1
        leader = self.nodes.get(node.leader_id)
        while (question := node.fetcher.offsets_request(node.node_id)) is not None:
            self.counts["out of range"] += 1
            if leader is None or not leader.is_alive:
                node.fetcher.unanswered(self.now_ms)
                return
            node.carry_out(node.fetcher.offsets_listed(serve_offsets(leader, question), self.now_ms), self.now_ms)

    def _lose(self, node: Node) -> None:
        self.counts["lost"] += 1
        node.request = None
        node.fetcher.unanswered(self.now_ms)

    # Looking at it

    def check(self) -> None:
        """Checks that every replica has the same records below any high watermark."""
        for node in self._live():
            partition = node.partition
            assert partition.high_watermark <= partition.log_end_offset, f"{node.node_id}: beyond its end"
            for base, batch in node.batches(partition.high_watermark):
                before = self.committed.setdefault(base, batch)
                assert before == batch, f"broker {node.node_id}: another batch at offset {base}, which was committed"

    def heal(self) -> None:
        """Runs without failures: at the end all replicas are equal, and no acknowledged record is missing."""
        for node in self.nodes.values():
            if not node.is_alive:
                self._start(node)
        for _ in range(CONVERGES_WITHIN):
            self.now_ms += STEP_MS
            self.tell()
            self.shrink()
            for node in self.nodes.values():
                if node.request is None:
                    node.next_request(self.now_ms)
                if node.request is not None and node.node_id not in self.answers:
                    self._serve(node, lost=False)
                if node.node_id in self.answers:
                    self._deliver(node, *self.answers.pop(node.node_id), lost=False)
            if self._is_whole():
                break
        assert self._is_whole(), f"{[(one.node_id, one.partition.role, one.partition.log) for one in self._live()]}"
        self.check()
        self._check_contents()

    def _is_whole(self) -> bool:
        leader = self.nodes.get(self.state.leader)
        if leader is None or len(self.state.isr) < len(NODES):
            return False
        end = leader.partition.log_end_offset
        return all(
            node.metadata == len(self.changes) - 1
            and node.partition.high_watermark == node.partition.log_end_offset == end
            for node in self.nodes.values()
        )

    def _check_contents(self) -> None:
        leader = self.nodes[self.state.leader]
        start = max(node.partition.log_start_offset for node in self.nodes.values())
        # before that a broker that died may have forgotten what was deleted: the checkpoint is written now and then
        expected = self._contents(leader, start)
        for base, batch in self.acknowledged.items():
            if base >= start:
                assert expected.get(base) == batch, f"acknowledged and lost: offset {base}"
        for node in self.nodes.values():
            assert self._contents(node, start) == expected, f"broker {node.node_id} has another log"

    @staticmethod
    def _contents(node: Node, start: int) -> dict[int, bytes]:
        return {base: batch for base, batch in node.batches(node.partition.log_end_offset) if base >= start}


ACTIONS: list[tuple[str, Callable[[FollowWorld], None]]] = [
    ("produce", FollowWorld.produce),
    ("fetch", FollowWorld.fetch),
    ("answer", FollowWorld.answer),
    ("tell", FollowWorld.tell),
    ("shrink", FollowWorld.shrink),
    ("flush", FollowWorld.flush),
    ("move", FollowWorld.move),
    ("crash", FollowWorld.crash),
    ("restart", FollowWorld.restart),
    ("delete", FollowWorld.delete_records),
]
WEIGHTS = [20, 40, 40, 20, 4, 6, 3, 3, 4, 1]
