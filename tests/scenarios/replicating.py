"""Scenario transcripts of broker 1 as a leader: followers' fetches, the controller's answers, and the time.

    assign 1,2,3 isr=1,2
    append 5
    fetch 2 5
    wait 30001
    check
    answer NONE

The log is its end and its high watermark. An effect is an advance of the high watermark, an ISR that is proposed, or an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.cluster.topics.topic import PartitionRegistration
from coordinator.replication.isr import Follower, Isr, IsrRules
from coordinator.replication.isr_changes import (
    CommittedIsr,
    IsrChange,
    IsrChanges,
    decided,
    is_pending,
    is_worth_a_retry,
    proposed_change,
)
from coordinator.replication.roles import UNASSIGNED, FollowerFetch, Leading, Role, next_role
from coordinator.replication.truncation import diverging_epoch
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import AlterPartitionResponse, ResponsePartitionData, ResponseTopicData
from protocol.types import TopicPartition
from storage.epochs import EpochEnd
from tests.scenarios.runner import RULE, Words, steps, words

LEADER = 1
NAME, TOPIC_ID = TopicPartition("orders", 0), bytes(15) + b"\x07"
BROKER_EPOCH = 10
MAX_LAG_MS = 30_000
START_MS = 1_000_000


def listed(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(broker_ids)))


def ids(text: str) -> tuple[int, ...]:
    return tuple(int(broker_id) for broker_id in text.split(","))


class LeaderScenario:
    """One replica, and the brokers in its metadata."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.role: Role = UNASSIGNED
        self.log_start_offset = self.log_end_offset = self.high_watermark = 0
        self.epochs: list[tuple[int, int]] = []
        self.min_insync_replicas = 1
        self.brokers: dict[int, int] = {}
        """The epochs of the unfenced brokers."""
        self.changes = IsrChanges(LEADER)
        self.rules = IsrRules(
            self._may_be_in_sync, lambda: MAX_LAG_MS, lambda broker_id: self.brokers.get(broker_id, -1)
        )
        self.effects: list[str] = []

    def _may_be_in_sync(self, follower: Follower) -> bool:
        return follower.broker_epoch == self.brokers.get(follower.replica_id)

    @property
    def last_leader_epoch(self) -> int:
        return self.epochs[-1][0]

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Returns the end of the largest epoch up to this one."""
        ends = [*(start for _, start in self.epochs[1:]), self.log_end_offset]
        older = [
            EpochEnd(epoch, end) for (epoch, _), end in zip(self.epochs, ends, strict=True) if epoch <= leader_epoch
        ]
        return older[-1] if older else EpochEnd(-1, -1)

    def become(self, role: Role) -> None:
        self.role = role
        if isinstance(role, Leading) and (not self.epochs or self.epochs[-1][0] != role.epoch):
            self.epochs.append((role.epoch, role.epoch_start))

    def leading(self) -> Leading:
        assert isinstance(self.role, Leading), f"{self.role}"
        return self.role

    def advance(self) -> None:
        if isinstance(self.role, Leading):
            offset = self.role.committed_offset(self.log_end_offset, self.min_insync_replicas, self.rules, self.now_ms)
            if offset > self.high_watermark:
                self.high_watermark = offset
                self.effects.append(f"high watermark {offset}")

    def propose(self, isr: Isr | None) -> None:
        if isr is not None:
            role = self.leading()
            change = proposed_change(NAME, TOPIC_ID, role, isr, BROKER_EPOCH)
            self.changes.add(change)
            self.become(role.with_isr(isr))
            self.effects.append(f"propose {listed(isr.proposed)}")

    # Commands

    def assign(self, arguments: Words) -> None:
        """Applies an assignment: replicas, isr=, leader=, epoch=, partition_epoch=."""
        replicas = ids(arguments.plain[0])
        partition = PartitionRegistration(
            replicas,
            ids(arguments.named.get("isr", arguments.plain[0])),
            arguments.int("leader", LEADER),
            arguments.int("epoch", 0),
            arguments.int("partition_epoch", 0),
        )
        self.brokers = {**dict.fromkeys(replicas, BROKER_EPOCH), **self.brokers}
        self.become(next_role(self.role, partition, LEADER, self.log_end_offset, self.now_ms))

    def require(self, arguments: Words) -> None:
        """Sets min.insync.replicas."""
        self.min_insync_replicas = int(arguments.plain[0])

    def append(self, arguments: Words) -> None:
        """Appends records. If this broker doesn't lead, they come from the leader that it follows."""
        if not isinstance(self.role, Leading):
            self.epochs.append((self.role.epoch, self.log_end_offset))
        self.log_end_offset += int(arguments.plain[0])

    def delete(self, arguments: Words) -> None:
        """Moves the log start offset."""
        self.log_start_offset = int(arguments.plain[0])

    def fetch(self, arguments: Words) -> None:
        """Sends a follower's Fetch: broker, offset, start= of its log, broker_epoch=, epoch= of the leader, last= epoch
        of its log."""
        broker_id, offset = map(int, arguments.plain)
        role, epoch = self.leading(), arguments.int("broker_epoch", BROKER_EPOCH)
        if broker_id not in role.followers:
            raise KafkaError(role.unknown_follower(arguments.int("epoch", -1)))
        if self.rules.is_stale(broker_id, epoch):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if "last" in arguments.named:
            end = diverging_epoch(self, arguments.int("last", 0), offset)
            if end is not None:
                self.effects.append(f"{broker_id} <- diverging epoch {end.epoch} ends at {end.end_offset}")
                return
        fetch = FollowerFetch(broker_id, epoch, offset, arguments.int("start", 0), self.now_ms)
        self.propose(role.fetched(fetch, self.log_end_offset, self.high_watermark, self.rules))

    def check(self, _arguments: Words) -> None:
        """Runs the periodic check of followers."""
        self.propose(self.leading().late(self.log_end_offset, self.rules, self.now_ms))

    def fence(self, arguments: Words) -> None:
        del self.brokers[int(arguments.plain[0])]

    def register(self, arguments: Words) -> None:
        """Registers a broker in an epoch, and unfences it."""
        broker_id, epoch = map(int, arguments.plain)
        self.brokers[broker_id] = epoch

    def answer(self, arguments: Words) -> None:
        """Sets the controller's answer to the pending change: NONE, perhaps with another isr= or partition_epoch=, or
        an error."""
        request = self.changes.next_request(BROKER_EPOCH, self._is_pending)
        if request is None:
            self.effects.append("nothing is pending")
            return
        (proposed,) = request.topics[0].partitions
        data = ResponsePartitionData(
            partition_index=NAME.partition,
            error_code=int(ErrorCode[arguments.plain[0]]),
            leader_id=LEADER,
            leader_epoch=proposed.leader_epoch,
            isr=[*ids(arguments.named["isr"])] if "isr" in arguments.named else proposed.new_isr,
            partition_epoch=arguments.int("partition_epoch", proposed.partition_epoch + 1),
        )
        topics = [ResponseTopicData(topic_id=TOPIC_ID, partitions=[data])]
        for change, verdict in self.changes.answered(AlterPartitionResponse(error_code=0, topics=topics)):
            after = decided(self.leading(), change, verdict)
            if is_worth_a_retry(verdict):
                self.changes.add(change)
            how = "committed" if isinstance(verdict, CommittedIsr) else "rejected"
            self.effects.append(f"{how}: in sync are {listed(after.isr.committed)}, maybe {listed(after.isr.maximal)}")
            self.become(after)

    def _is_pending(self, change: IsrChange) -> bool:
        return is_pending(self.role, change)

    def low_watermark(self, _arguments: Words) -> None:
        self.effects.append(f"low watermark {self.leading().low_watermark(self.log_start_offset, self.rules)}")

    def wait(self, arguments: Words) -> None:
        """Advances the time."""
        self.now_ms += int(arguments.plain[0])


COMMANDS: dict[str, Callable[[LeaderScenario, Words], None]] = {
    command.__name__: command
    for command in (
        LeaderScenario.assign, LeaderScenario.require, LeaderScenario.append, LeaderScenario.delete,
        LeaderScenario.fetch, LeaderScenario.check, LeaderScenario.fence, LeaderScenario.register,
        LeaderScenario.answer, LeaderScenario.low_watermark, LeaderScenario.wait,
    )
}  # fmt: skip


def play(text: str) -> str:
    """Returns the transcript with its commands and their present effects."""
    scenario = LeaderScenario()
    blocks = []
    for step in steps(text):
        for line in step.commands:
            command = words(line)
            try:
                COMMANDS[command.plain[0]](scenario, Words(command.plain[1:], command.named))
            except KafkaError as error:
                scenario.effects.append(f"<- {error.code.name}")
            scenario.advance()
        blocks.append("\n".join([*step.before, *step.commands, RULE, *scenario.effects]))
        scenario.effects.clear()
    return "\n\n".join(blocks) + "\n"
