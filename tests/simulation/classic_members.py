"""Consumers of a classic group on a virtual clock: they follow the protocol, and fail as a seed decides.

A member joins, syncs, heartbeats, reads and commits. It may die, stall, leave, come back (a static member with its
instance id), lose answers, and send a wrong generation or member id.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from random import Random
from typing import Any

from coordinator.group import requests
from coordinator.group.offsets.commit import commit
from coordinator.group.offsets.fetch import fetch
from coordinator.group.state import Client
from protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read,
    write,
)
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.group.world import GROUP, Groups
from tests.group_requests import fetched_group, join_group, offset_commit, sync_group

TOPIC = "orders"
PARTITIONS = 5
SESSION_MS = 10_000
REBALANCE_MS = 20_000
HEARTBEAT_MS = 3_000

REJOIN_ANEW = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND}
REFUSALS = REJOIN_ANEW | {
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
SUBSCRIPTION = write(ConsumerProtocolSubscription(topics=[TOPIC]), 0)


class Phase(Enum):
    """The next step of a member."""

    OUT = "join"
    JOINING = "wait for the rebalance"
    JOINED = "sync"
    SYNCING = "wait for the assignment"
    STABLE = "heartbeat, read and commit"
    DEAD = "nothing"


class Coordinator(Groups):
    """The shard, and the commits that it has acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.create_topic(TOPIC, PARTITIONS)
        self.committed: dict[int, int] = {}

    def positions(self, partitions: Iterable[int]) -> dict[int, int]:
        """Returns the committed offsets; 0 for a partition without one."""
        request = fetched_group(GROUP, {TOPIC: partitions})
        answer = self.ask(fetch, request, False).answer
        return {
            partition.partition_index: max(partition.committed_offset, 0) for partition in answer.topics[0].partitions
        }


class Member:
    """A consumer."""

    def __init__(self, name: str, coordinator: Coordinator, random: Random, *, static: bool, version: int) -> None:
        self.name = name
        self.coordinator = coordinator
        self.random = random
        self.instance_id = f"instance-{name}" if static else None
        self.version = version
        self.phase = Phase.OUT
        self.member_id = ""
        self.generation = -1
        self.leads: list[str] | None = None
        self.owned: dict[int, int] = {}
        """Positions by partition."""
        self.next_ms = 0
        self.lives = 0

    @property
    def client(self) -> Client:
        return Client(self.version, self.name, "/127.0.0.1")

    # What it does.

    def act(self) -> None:
        if self.phase is Phase.OUT:
            self.join()
        elif self.phase is Phase.JOINED:
            self.sync()
        elif self.phase is Phase.STABLE:
            self.read_and_commit()
            self.heartbeat()
        self.next_ms = self.coordinator.now_ms + self.random.randrange(HEARTBEAT_MS)

    def ask(self, what: str, decide: Any, request: object) -> None:
        """Returns the answer to a request. If the process dies meanwhile, the answer is lost."""
        lives = self.lives
        self.coordinator.ask(
            decide, request, self.client, lambda answer: self.answered(what, answer) if lives == self.lives else None
        )

    def join(self) -> None:
        self.phase, self.owned = Phase.JOINING, {}
        request = join_group(
            GROUP, self.member_id, metadata=SUBSCRIPTION, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS,
            group_instance_id=self.instance_id,
        )  # fmt: skip
        self.ask("join", requests.join_group, request)

    def sync(self) -> None:
        self.phase = Phase.SYNCING
        assignments = self.assign(self.leads) if self.leads is not None else None
        request = sync_group(GROUP, self.member_id, self.generation, assignments, group_instance_id=self.instance_id)
        self.ask("sync", requests.sync_group, request)

    @staticmethod
    def assign(members: list[str]) -> dict[str, bytes]:
        shares: dict[str, list[int]] = {member_id: [] for member_id in members}
        for partition in range(PARTITIONS):
            shares[members[partition % len(members)]].append(partition)
        return {member_id: assignment(partitions) for member_id, partitions in shares.items()}

    def heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self.ask("heartbeat", requests.heartbeat, request)

    def read_and_commit(self) -> None:
        for partition in self.owned:
            self.owned[partition] += self.random.randrange(5)
        if self.owned and self.random.random() < 0.5:
            self.commit(self.generation)

    def commit(self, generation: int) -> None:
        request = offset_commit(
            GROUP, {TOPIC: self.owned}, generation_id_or_member_epoch=generation, member_id=self.member_id,
            group_instance_id=self.instance_id,
        )  # fmt: skip
        self.ask("commit", commit, request)

    def leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=GROUP, members=[MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)]
        )
        self.ask("leave", requests.leave_group, request)
        self.die()

    def die(self) -> None:
        self.phase, self.owned = Phase.DEAD, {}
        self.lives += 1

    def come_back(self) -> None:
        """Restarts as a new process: a static member keeps only its instance id."""
        self.phase, self.member_id, self.generation, self.leads = Phase.OUT, "", -1, None

    def lie(self) -> None:
        """Commits with a wrong generation, which the group must reject."""
        if self.phase is Phase.STABLE and self.owned:
            before = self.coordinator.positions(range(PARTITIONS))
            request_generation = self.generation + self.random.choice((-1, 1, 7))
            phase, owned = self.phase, dict(self.owned)
            self.owned = dict.fromkeys(owned, 1_000_000)
            self.commit(max(request_generation, 0))
            if self.phase is phase:  # its generation is the group's by chance: then it was no lie
                assert self.generation != request_generation
            self.owned = owned if self.phase is phase else {}
            assert self.coordinator.positions(range(PARTITIONS)) == before

    # What it hears.

    def answered(self, what: str, answer: Any) -> None:
        if isinstance(answer, KafkaError):
            self.failed(what, answer.code)
            return
        code = error_code(getattr(answer, "error_code", 0))
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self.phase = answer.member_id, Phase.OUT
        elif code:
            self.failed(what, code)
        elif isinstance(answer, JoinGroupResponse):
            self.joined(answer)
        elif isinstance(answer, SyncGroupResponse):
            self.assigned(answer)
        elif what == "commit":
            self.coordinator.committed |= self.owned

    def joined(self, answer: JoinGroupResponse) -> None:
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leads = [member.member_id for member in answer.members] if answer.leader == answer.member_id else None
        self.phase = Phase.JOINED

    def assigned(self, answer: SyncGroupResponse) -> None:
        if answer.assignment:
            given = read(ConsumerProtocolAssignment, answer.assignment)
            partitions = [index for topic in given.assigned_partitions for index in topic.partitions]
            self.owned = self.coordinator.positions(partitions)
        self.phase = Phase.STABLE

    def failed(self, what: str, code: ErrorCode) -> None:
        assert code in REFUSALS, f"{self.name} got {code.name} for {what}"
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.die()
        elif what in ("join", "sync", "heartbeat", "commit"):
            if code in REJOIN_ANEW:
                self.member_id, self.generation = "", -1
            if code is ErrorCode.NOT_COORDINATOR and what == "commit":
                return
            self.phase, self.owned = Phase.OUT, {}


def assignment(partitions: list[int]) -> bytes:
    assigned = [TopicPartition(topic=TOPIC, partitions=partitions)] if partitions else []
    return write(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)
