"""A quorum of several voters and observers over a failing network, on disks that lose what is not flushed: the raft
core is real.

Invariants, after those of Kafka's RaftEventSimulationTest and of the TLA+ specification of KRaft: an epoch has one
leader; epochs and high watermarks never go back; a batch of an epoch and offset is everywhere the same, with the same
log before it; what is committed was flushed by a majority of the leader's voters, and each later leader has it; a
leader never loads a snapshot; a voter set differs from the set of before by one voter. When faults have ended, a leader
is elected, everything is committed everywhere, the voters can be changed, and no voter stays Prospective.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final

from coordinator.cluster.brokers.info import Endpoint, FeatureRange
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.leadership import Location
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import LeaderAndRole, Response, Send
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.rules import RULES, Rules
from coordinator.quorum.voter_set import NO_OFFSET, VoterNode, VoterSet, from_record
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from protocol.messages.vote import VoteRequest
from protocol.records.batch import AT_LEADER_EPOCH
from protocol.records.building import build
from protocol.records.control import KRaftVersionRecord, VotersRecord
from protocol.records.record import Record
from protocol.types import NO_UUID, Uuid
from tests.simulation.quorum_disk import StoredBatch, StoredSnapshot
from tests.simulation.quorum_node import CONFIG, LISTENER, QuorumNode

SETTLE_MS: Final = 60_000
"""Time within which a quorum without faults elects a leader and commits everything: many times what it needs."""

MAX_SENDS: Final = 150
"""Maximum number of requests that a node sends another in a second: 50 at the shortest pause, and some with news."""

JOIN_MS: Final = 10_000
"""Time in which an AddRaftVoter arrives and is complete: MAX_DELAY_MS, and two requests' timeouts."""

MAX_DELAY_MS: Final = 2_500
"""Maximum delay of a message, longer than a request's timeout."""

VERSIONS: Final[Mapping[type, int]] = {
    VoteRequest: 2,
    BeginQuorumEpochRequest: 1,
    EndQuorumEpochRequest: 1,
    FetchRequest: 18,
    FetchSnapshotRequest: 1,
    AddRaftVoterRequest: 1,
    RemoveRaftVoterRequest: 0,
    UpdateRaftVoterRequest: 0,
    ApiVersionsRequest: 4,
}


def counted(rules: Rules, transitions: Counter[tuple[Role, Role, bool]]) -> Rules:
    """Returns the rules, with a count of the transitions between roles."""

    class Counted(type(rules)):  # type: ignore[misc]  # the class of a planted fault
        def check_transition(self, before: Role, epoch: int, after: Role, new_epoch: int) -> None:
            super().check_transition(before, epoch, after, new_epoch)
            transitions[before, after, new_epoch > epoch] += 1

    return Counted()


class QuorumWorld:
    """A run of the world, which is determined by its seed."""

    def __init__(self, seed: int, rules: Rules = RULES, kind: type[QuorumNode] = QuorumNode) -> None:
        self.dice = dice = Random(seed)
        self.counts: Counter[str] = Counter()
        self.transitions: Counter[tuple[Role, Role, bool]] = Counter()
        self.rules: Rules = counted(rules, self.transitions)
        self.now_ms = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._event_id = 0
        self._ticks: dict[int, int] = {}
        self._directories = 0
        # Faults
        self.loss = 0.0
        self.delay_ms = 5
        self.duplicates = 0.0
        self.damage = 0.0
        self.crashes = 0.0
        self.cut: set[tuple[int, int]] = set()
        """Pairs of sender and receiver whose messages are lost."""
        # What is known of the whole
        self.leaders: dict[int, tuple[int, int]] = {}
        self.batches: dict[tuple[int, int], int] = {}
        """The hash of the log up to each batch, by epoch and base offset."""
        self.chains: dict[int, int] = {0: 0}
        """The hash of the committed log, by offset."""
        self.committed_to = 0
        self.committed_in: dict[int, int] = {}
        """The end of what was committed in each epoch."""
        self.voter_sets: dict[int, VoterSet] = {}
        self.snapshot_contents: dict[bytes, StoredSnapshot] = {}
        self.answers: list[Response] = []
        self.dead: dict[ReplicaKey, int] = {}
        """Voters whose disk is lost, and the offset up to which they had flushed their log."""
        self.proposed = 0
        self.is_restored = False
        """True once a majority has lost committed records with their disks, which no protocol survives: then a node's
        own high watermark is all that must hold."""
        self.sends: Counter[tuple[int, Location, int]] = Counter()
        """Requests by sender, receiver and second."""
        self.joining: dict[int, int] = {}
        """The time of the last AddRaftVoter for each node: its directory may be added to the voters soon after."""
        self.has_moved = False
        """True once a node has another address than the voter set says, so that it can't be asked for its vote."""
        self.config = CONFIG._replace(
            election_timeout_ms=dice.choice((1_000, 1_000, 1_000, 100)), retry_backoff_ms=100 if seed % 4 else 20
        )
        # The nodes
        self.is_static = dice.random() < 0.25
        voters, others = dice.choice((1, 2, 3, 3, 3, 3, 4, 5)), dice.choice((0, 0, 1, 1, 2))
        self.nodes: dict[int, QuorumNode] = {}
        for node_id in range(1, voters + others + 1):
            is_broker = node_id > voters and dice.random() < 0.3
            self.nodes[node_id] = kind(self, node_id, can_vote=not is_broker)
        first = [self.nodes[node_id] for node_id in range(1, voters + 1)]
        self.static_voters = VoterSet()
        if self.is_static:
            self.static_voters = VoterSet(self._voter(node, static=True) for node in first)
        else:
            self._format(first)
        self.bootstrap = tuple(
            node.location for node in dice.sample(first, dice.randint(min(2, len(first)), len(first)))
        )
        for node in self.nodes.values():
            node.auto_join = node.node_id > voters and node.can_vote and dice.random() < 0.3

    def _voter(self, node: QuorumNode, *, static: bool = False) -> VoterNode:
        key = ReplicaKey(node.node_id, NO_UUID) if static else node.key
        return VoterNode(key, (Endpoint(LISTENER, *node.location),), FeatureRange(0, 0 if static else 1))

    def _format(self, voters: list[QuorumNode]) -> None:
        """Formats the first voters with the same snapshot at offset 0."""
        record = VoterSet(self._voter(node) for node in voters).to_record()
        records = (KRaftVersionRecord(version=0, k_raft_version=1), record)
        for node in voters:
            node.disk.snapshots[SnapshotId(0, 0)] = StoredSnapshot(SnapshotId(0, 0), 0, records)
        self.voter_sets[NO_OFFSET] = from_record(record)

    def new_directory(self) -> Uuid:
        self._directories += 1
        return self._directories.to_bytes(16)

    @staticmethod
    def version_of(request: object) -> int:
        return VERSIONS[type(request)]

    # Time

    def after(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._event_id += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._event_id, event))

    def schedule_tick(self, node: QuorumNode, at_ms: int) -> None:
        """Ticks a node at its deadline. A tick that is already due earlier schedules the next."""
        at_ms = max(at_ms, self.now_ms)
        due = self._ticks.get(node.node_id)
        if (due is not None and due <= at_ms) or at_ms > self.now_ms + 3_600_000:
            return
        self._ticks[node.node_id] = at_ms

        def tick() -> None:
            if self._ticks.get(node.node_id) == at_ms:
                del self._ticks[node.node_id]
                if node.raft is not None and node.raft.deadline_ms > node.now_ms:
                    self.schedule_tick(node, node.raft.deadline_ms - node.clock_ms)
                else:
                    node.tick()

        self.after(at_ms - self.now_ms, tick)

    def run_for(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        while self._events and self._events[0][0] <= until_ms:
            self.now_ms, _, event = heapq.heappop(self._events)
            event()
        self.now_ms = until_ms

    # The network

    def _is_lost(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) in self.cut or (self.loss > 0 and self.dice.random() < self.loss)

    def _delay(self) -> int:
        dice = self.dice
        return (
            dice.randint(0, self.delay_ms)
            if dice.random() > 0.02
            else dice.randint(0, min(self.delay_ms * 60, MAX_DELAY_MS))
        )

    def deliver_request(self, node: QuorumNode, send: Send) -> None:
        """Sends a request over the network."""
        incarnation, correlation_id = node.incarnation, send.correlation_id
        count = (node.node_id, send.destination, self.now_ms // 1_000)
        self.sends[count] += 1
        assert self.sends[count] <= MAX_SENDS, f"node {node.node_id} is busy: it asks {send.destination} all the time"
        receiver = self._at(send.destination)

        def failed(code: ErrorCode) -> None:
            if node.incarnation == incarnation:
                node.answered(correlation_id, code)

        if receiver is None or (receiver.raft is None and not self._is_lost(node.node_id, receiver.node_id)):
            self.after(self._delay(), lambda: failed(ErrorCode.BROKER_NOT_AVAILABLE))
            return
        if self._is_lost(node.node_id, receiver.node_id):
            if self.dice.random() < 0.7:
                self.after(send.timeout_ms, lambda: failed(ErrorCode.REQUEST_TIMED_OUT))
            return
        sender = (node.node_id << 20 | incarnation, correlation_id)
        request = send.request
        if isinstance(request, AddRaftVoterRequest):
            self.joining[request.voter_id] = self.now_ms
        self.after(self._delay(), lambda: receiver.receive(request, sender))
        if self.duplicates and self.dice.random() < self.duplicates:
            self.counts["duplicate"] += 1
            self.after(self._delay(), lambda: receiver.receive(request, sender))

    def deliver_response(
        self, node: QuorumNode, sender: tuple[int, int], response: Response | ApiVersionsResponse
    ) -> None:
        """Sends an answer back."""
        receiver = self.nodes[sender[0] >> 20]
        incarnation = sender[0] & 0xFFFFF
        if self._is_lost(node.node_id, receiver.node_id):
            return
        if self.damage and self.dice.random() < self.damage:
            if isinstance(response, FetchResponse):
                self._damage(response)
            elif isinstance(response, FetchSnapshotResponse) and response.topics:
                self._damage_piece(response)

        def arrive() -> None:
            if receiver.incarnation == incarnation:
                receiver.answered(sender[1], response)

        self.after(self._delay(), arrive)

    def _damage(self, response: FetchResponse) -> None:
        """Damages the records: flips a bit in a part that the CRC covers, or makes an epoch impossible."""
        data = response.responses[0].partitions[0] if response.responses else None
        if data is not None and data.records and len(data.records) > 61:
            records = bytearray(data.records)
            if self.dice.random() < 0.3:  # an epoch that the CRC doesn't cover, later than the leader's
                records[AT_LEADER_EPOCH : AT_LEADER_EPOCH + 4] = (data.current_leader.leader_epoch + 9).to_bytes(4)
            else:
                records[self.dice.randrange(17, 61)] ^= 1 << self.dice.randrange(8)
            data.records = bytes(records)
            self.counts["damaged records"] += 1

    def _damage_piece(self, response: FetchSnapshotResponse) -> None:
        """Flips a bit of a snapshot."""
        data = response.topics[0].partitions[0]
        if data.unaligned_records:
            content = bytearray(data.unaligned_records)
            content[self.dice.randrange(len(content))] ^= 1
            data.unaligned_records = bytes(content)

    def _at(self, location: Location) -> QuorumNode | None:
        node = self.nodes[int(location.host[1:])]
        return node if node.port == location.port else None

    # What must hold

    def led(self, node: QuorumNode, leader: LeaderAndRole) -> None:
        """Checks a leader: it is the only one of its epoch, and has everything that was committed before. A leader that
        learns of its votes late may lack what the leader of a later epoch has committed; it can commit nothing."""
        if leader.role is not Role.LEADER or self.is_restored:
            return
        who = (node.node_id, node.incarnation)
        assert self.leaders.setdefault(leader.epoch, who) == who, f"epoch {leader.epoch} has a second leader"
        disk = node.disk
        committed_to = max((end for epoch, end in self.committed_in.items() if epoch < leader.epoch), default=0)
        assert disk.end_offset > committed_to, f"leader {node.node_id} lacks committed records"
        if committed_to >= disk.start_offset:
            chain = disk.chain_at(committed_to)
            assert chain == self.chains[committed_to], f"leader {node.node_id} has other committed records"
        self.counts["elected"] += 1

    def appended(self, node: QuorumNode, batch: StoredBatch) -> None:
        """Checks a batch: it is the same on every node, with the same log before it."""
        if self.is_restored:
            return
        known = self.batches.setdefault((batch.epoch, batch.base_offset), batch.chain)
        assert known == batch.chain, f"node {node.node_id} has another batch at {batch.base_offset} of {batch.epoch}"
        raft = node.raft
        assert raft is not None
        if raft.role is Role.LEADER:
            for offset, record in batch.control:
                if isinstance(record, VotersRecord):
                    self._check_change(node, raft.voters_before(offset)[0], from_record(record), offset)

    def _check_change(self, node: QuorumNode, before: VoterSet, after: VoterSet, offset: int) -> None:
        """Checks a new voter set: it changes one voter, and the set of before is committed."""
        self.counts["voters written"] += 1
        if not len(before) or any(voter.key.directory_id == NO_UUID for voter in before):
            return
        changed = {voter.key for voter in before} ^ {voter.key for voter in after}
        assert len(changed) <= 1, f"the voters {before} become {after}"
        if not changed:
            return
        assert node.raft is not None
        for batch in node.disk.between(node.raft.high_watermark, offset):
            for _, record in batch.control:
                assert not isinstance(record, VotersRecord), f"{after} follows {before}, which is not committed"

    def committed(self, node: QuorumNode, high_watermark: int) -> None:
        """Checks a high watermark: what is before it is the same for all, and a majority has flushed it."""
        disk, raft = node.disk, node.raft
        if raft is None or self.is_restored:
            return
        chain = disk.chain_at(high_watermark)
        if chain is not None:
            known = self.chains.setdefault(high_watermark, chain)
            assert known == chain, f"node {node.node_id} commits other records before {high_watermark}"
        if high_watermark > self.committed_to:
            is_leader = raft.role in (Role.LEADER, Role.RESIGNED)  # it resigns after it has committed its own removal
            assert is_leader, f"node {node.node_id} commits {high_watermark} first, as {raft.role}"
            self._check_majority(raft.voters, high_watermark)
            for batch in disk.between(self.committed_to, high_watermark):
                known = self.chains.setdefault(batch.next_offset, batch.chain)
                assert known == batch.chain, f"leader {node.node_id} commits other records"
            last = disk.batches[-1] if disk.batches else None
            for batch in disk.between(self.committed_to, high_watermark):
                last = batch
            assert last is not None
            assert last.epoch == raft.epoch, f"leader {node.node_id} commits a record of epoch {last.epoch} by counting"
            self.committed_to = self.committed_in[raft.epoch] = high_watermark

    def _check_majority(self, voters: VoterSet, offset: int) -> None:
        """Checks that a majority of the voters has flushed everything before an offset."""
        having = 0
        for voter in voters:
            node = self.nodes[voter.key.node_id]
            flushed = node.disk.flushed if voter.is_key(node.key) else self.dead.get(voter.key, 0)
            having += flushed >= offset
        assert having > len(voters) // 2, f"{offset} is committed, but only {having} of {voters} have flushed it"

    def check_logs(self) -> None:
        """Checks the invariants of disks."""
        for node in self.nodes.values():
            disk = node.disk
            if disk.start_offset:
                assert any(key.offset == disk.start_offset for key in disk.snapshots), "no snapshot at the log start"

    # What happens

    def start_all(self) -> None:
        for node in self.nodes.values():
            if node.raft is None:
                node.start()

    def leader(self) -> QuorumNode | None:
        """Returns the leader of the latest epoch that has one."""
        leading = [node for node in self.running if node.raft is not None and node.raft.role is Role.LEADER]
        return max(leading, key=lambda node: node.raft.epoch if node.raft else 0, default=None)

    @property
    def running(self) -> list[QuorumNode]:
        return [node for node in self.nodes.values() if node.raft is not None]

    def crash(self, node: QuorumNode, *, power: bool) -> None:
        if node.raft is not None:
            self.counts["power cut" if power else "killed"] += 1
            node.stop(power=power)

    def propose(self, node: QuorumNode) -> bool:
        """Appends a batch, if the node leads."""
        assert node.raft is not None
        self.proposed += 1
        batch = self.batch(self.proposed, self.dice.choice((1, 1, 3)))
        try:
            node.raft.propose(batch, node.now_ms)
        except KafkaError:
            return False
        node.carry_out()
        return True

    def batch(self, number: int, records: int) -> bytearray:
        """Returns a client's change."""
        return build([Record(0, 0, None, b"%d" % number)] * records)

    def operator_answered(self, response: Response) -> None:
        self.answers.append(response)

    # Changes of the voters

    def _voter_sets(self) -> Iterator[VoterSet]:
        """Yields the voter sets that may count: those of running nodes, and those on disks."""
        for node in self.nodes.values():
            if node.raft is not None:
                yield node.raft.voters
            recovered = node.disk.recovered_voters()
            if recovered is not None:
                yield recovered

    def survives_loss(self, key: ReplicaKey) -> bool:
        """True if every voter set keeps a majority when another voter is lost. A node that is being added, or that may
        add itself at any time, may be needed for the majority that it becomes a part of."""
        votes = any(voter.key == key for voters in self._voter_sets() for voter in voters)
        if self.now_ms - self.joining.get(key.node_id, -JOIN_MS) < JOIN_MS:
            return False
        if self.nodes[key.node_id].auto_join and not votes:
            return False
        gone = self.dead.keys() | {key}
        return all(2 * sum(voter.key not in gone for voter in voters) > len(voters) for voters in self._voter_sets())

    def survives_removal(self, key: ReplicaKey) -> bool:
        """True if every voter set keeps a majority when a voter is removed from it. A node that has moved may be needed
        for that majority, and can't be reached before its new address is committed."""
        if self.has_moved:
            return False
        for voters in self._voter_sets():
            after = [voter.key for voter in voters if voter.key != key]
            if 2 * sum(other not in self.dead for other in after) <= len(after):
                return False
        return True

    def add_voter(self, node: QuorumNode, leader: QuorumNode) -> None:
        request = AddRaftVoterRequest(
            cluster_id="the-cluster",
            timeout_ms=1_000,
            voter_id=node.node_id,
            voter_directory_id=node.disk.directory_id,
            listeners=[Listener(name=LISTENER, host=node.location.host, port=node.location.port)],
            ack_when_committed=self.dice.random() < 0.7,
        )
        self.joining[node.node_id] = self.now_ms
        leader.receive(request, None)

    def remove_voter(self, key: ReplicaKey, leader: QuorumNode) -> None:
        request = RemoveRaftVoterRequest(
            cluster_id="the-cluster", voter_id=key.node_id, voter_directory_id=key.directory_id
        )
        leader.receive(request, None)

    def lose_disk(self, node: QuorumNode) -> None:
        """Replaces a node's disk by an empty one, with another directory id."""
        self.counts["disk lost"] += 1
        self.dead[node.key] = node.disk.flushed
        if node.raft is not None:
            node.stop(power=True)
        node.disk = type(node.disk)(self.new_directory())

    # After the faults

    def heal(self) -> None:
        self.loss, self.delay_ms, self.duplicates, self.damage, self.crashes = 0.0, 5, 0.0, 0.0, 0.0
        self.cut.clear()
        for node in self.nodes.values():
            node.flushes_ms = 5
        self.start_all()

    def settle(self) -> None:
        """Checks that a quorum without faults does everything that it should."""
        self.heal()
        self._await_settled()
        leader, _ = self.led_by()
        before = self.committed_to
        assert self.propose(leader)
        self.run_for(3_000)
        assert self.committed_to > before, "a leader of a healthy quorum doesn't commit"
        self.check_logs()
        self._check_stability()
        self._check_isolated_leader()
        self._check_reconfiguration()

    def _await_settled(self) -> None:
        for _ in range(SETTLE_MS // 1_000):
            self.run_for(1_000)
            if self._is_settled():
                return
        states = [
            (node.node_id, node.raft.role.value, node.raft.epoch, node.raft.end_offset, node.raft.high_watermark)
            for node in self.running
            if node.raft is not None
        ]
        raise AssertionError(f"the quorum does not recover: {states}")

    def _is_settled(self) -> bool:
        leader = self.leader()
        if leader is None or leader.raft is None or leader.raft.high_watermark < leader.raft.end_offset:
            return False
        return all(
            node is leader
            or (
                node.raft is not None
                and node.raft.role is Role.FOLLOWER
                and node.raft.epoch == leader.raft.epoch
                and node.raft.high_watermark == leader.raft.end_offset
            )
            for node in self.running
        )

    def _cut_off(self, lost: int) -> None:
        self.cut = {(lost, node_id) for node_id in self.nodes} | {(node_id, lost) for node_id in self.nodes}

    def _living(self, voters: VoterSet) -> list[int]:
        return [voter.key.node_id for voter in voters if voter.is_key(self.nodes[voter.key.node_id].key)]

    def _check_stability(self) -> None:
        """Checks that a leader stays the leader while a minority is cut off, and when it comes back
        (StableLeadership)."""
        leader, raft = self.led_by()
        epoch, voters = raft.epoch, raft.voters
        living = self._living(voters)
        if len(living) - 1 > len(voters) // 2:
            self._cut_off(self.dice.choice([node_id for node_id in living if node_id != leader.node_id]))
        self.run_for(5_000)
        self.cut.clear()
        self.run_for(3_000)
        is_same = leader.raft is raft and raft.role is Role.LEADER and raft.epoch == epoch
        assert is_same, "the leader of a majority is replaced"

    def _check_isolated_leader(self) -> None:
        """Checks that a leader that no other node reaches resigns, and that the others elect another."""
        leader, raft = self.led_by()
        epoch, voters = raft.epoch, raft.voters
        if len(voters) == 1:
            return
        self._cut_off(leader.node_id)
        self.run_for(MAX_DELAY_MS + 5_000)
        assert raft.role is not Role.LEADER or raft.epoch > epoch, "a leader without a majority leads on"
        if len(self._living(voters)) - 1 > len(voters) // 2:
            self.run_for(10_000)
            assert self.led_by()[0] is not leader, "a majority without its leader elects none"
        self.cut.clear()
        self._await_settled()

    def led_by(self) -> tuple[QuorumNode, Raft]:
        """Returns the leader, which must exist."""
        leader = self.leader()
        assert leader is not None, "nobody leads"
        assert leader.raft is not None
        return leader, leader.raft

    def _check_reconfiguration(self) -> None:
        """Checks that a voter can be removed (ReconfigurationNotStuck)."""
        _, raft = self.led_by()
        if not raft.kraft_version or len(raft.voters) < 2:
            return
        message: str | None = None
        for _ in range(8):
            leader, raft = self.led_by()
            keys = [voter.key for voter in raft.voters if voter.key != leader.key]
            key = next((key for key in keys if key in self.dead), keys[0])
            if not self.survives_removal(key):
                return
            self.answers.clear()
            self.remove_voter(key, leader)
            self.run_for(2_500)
            assert self.answers, "RemoveRaftVoter is not answered"
            answer = self.answers[0]
            assert isinstance(answer, RemoveRaftVoterResponse)
            if not answer.error_code:
                self.counts["removed at the end"] += 1
                return
            message = answer.error_message
            self.run_for(3_000)
        raise AssertionError(f"a voter of a healthy quorum can't be removed: {message}")
