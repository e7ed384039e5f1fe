"""A member of a classic group: joins, syncs and sends heartbeats (KIP-62, KIP-394)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from commands.client.cluster_client import PAUSE, ClusterClient, draw
from commands.client.patience import LOST, Patience
from commands.errors import raise_if
from commands.groups.range_assignor import assign_by_range
from protocol import consumer_protocol
from protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolAssignment, ConsumerProtocolSubscription
from protocol.errors import ErrorCode, error_code
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from protocol.types import TopicPartition

STRATEGY: Final = "range"
"""The assignor that every client has among its defaults."""

SESSION_TIMEOUT_MS: Final = 45_000
REBALANCE_TIMEOUT_MS: Final = 60_000
HEARTBEAT_INTERVAL_MS: Final = 3000
"""Defaults of Kafka's consumers, except for the rebalance timeout: a command prints its fetched records in less
time."""

TOPICS_AGE_MS: Final = 60_000
"""Interval at which the group's leader checks whether topics have more partitions. librdkafka and Java's clients check
every five minutes; a user at a terminal waits less patiently. Missing topics are checked with each heartbeat."""

SUBSCRIPTION_VERSION: Final = 0
UNKNOWN_GENERATION: Final = -1

REJOIN: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)
"""Errors after which a member joins again."""


class GroupIdentity(NamedTuple):
    """Member id and generation of OffsetCommit. The defaults commit as no member, which only an empty group accepts."""

    member_id: str = ""
    generation: int = UNKNOWN_GENERATION


class Membership:
    """One member of a group."""

    def __init__(self, cluster: ClusterClient, group: str, topics: Sequence[str]) -> None:
        self.identity = GroupIdentity()
        self.must_rejoin = True
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._patience = Patience(cluster.clock)
        self._assigned: dict[str, int] | None = None
        """The partition counts that this member used for its assignment, 0 for a missing topic; None while another
        member leads the group."""
        self._looked_ms = 0

    @property
    def is_member(self) -> bool:
        return self.identity.generation != UNKNOWN_GENERATION

    async def join(self) -> list[TopicPartition]:
        """Takes part in rebalances until this member has an assignment. Raises CommandError, PeerError."""
        failures = 0
        while True:
            try:
                joined = await self._join()
                assignment = None if joined is None else await self._sync(joined)
                self._patience.answered()
            except LOST as error:
                self._patience.lost(error)
                failures += 1
                await self._cluster.pause(PAUSE.delay_ms(failures, draw()))
                continue
            if assignment is not None:
                self.must_rejoin = False
                return [
                    TopicPartition(entry.topic, index)
                    for entry in assignment.assigned_partitions
                    for index in entry.partitions
                ]

    async def keep_alive(self) -> None:
        """Sends heartbeats until cancelled. Raises CommandError, PeerError."""
        while True:
            await self._cluster.pause(HEARTBEAT_INTERVAL_MS)
            if self.must_rejoin:
                continue
            try:
                await self._heartbeat()
                await self._look_at_topics()
                self._patience.answered()
            except LOST as error:
                self._patience.lost(error)

    async def _heartbeat(self) -> None:
        member_id, generation = self.identity
        request = HeartbeatRequest(group_id=self._group, generation_id=generation, member_id=member_id)
        answer = await self._cluster.of_group(self._group, request, HeartbeatResponse)
        if self.identity == (member_id, generation):
            self._is_over("a heartbeat", answer.error_code)

    async def _look_at_topics(self) -> None:
        """Rejoins, so that the group rebalances, if this member leads the group and the partition counts of its topics
        have changed (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator, by its snapshots of metadata)."""
        assigned = self._assigned
        if assigned is None or self.must_rejoin:
            return
        now_ms = self._cluster.clock.monotonic_ms()
        if all(assigned.values()) and now_ms - self._looked_ms < TOPICS_AGE_MS:
            return
        present = await self._partition_counts(assigned)
        if self._assigned is assigned and present != assigned:
            self.must_rejoin = True

    async def leave(self) -> None:
        """Leaves the group, so that the other members don't wait until its session expires."""
        member_id, _ = self.identity
        if not member_id:
            return
        self.identity = GroupIdentity()
        request = LeaveGroupRequest(
            group_id=self._group, member_id=member_id, members=[MemberIdentity(member_id=member_id)]
        )
        with suppress(*LOST):  # then its session expires
            await self._cluster.of_group(self._group, request, LeaveGroupResponse)

    async def _join(self) -> JoinGroupResponse | None:
        subscription = ConsumerProtocolSubscription(topics=self._topics)
        metadata = consumer_protocol.write(subscription, SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.identity.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=STRATEGY, metadata=metadata)],
        )
        wait_ms = REBALANCE_TIMEOUT_MS + self._cluster.timeout_ms
        answer = await self._cluster.of_group(self._group, request, JoinGroupResponse, timeout_ms=wait_ms)
        if answer.member_id:
            self.identity = GroupIdentity(answer.member_id, answer.generation_id)
        return None if self._is_over("the join", answer.error_code) else answer

    async def _sync(self, joined: JoinGroupResponse) -> ConsumerProtocolAssignment | None:
        member_id, generation = self.identity
        leads = joined.leader == member_id and not joined.skip_assignment
        self._assigned = None
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=generation,
            member_id=member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=await self._assignments(joined) if leads else [],
        )
        wait_ms = REBALANCE_TIMEOUT_MS + self._cluster.timeout_ms
        answer = await self._cluster.of_group(self._group, request, SyncGroupResponse, timeout_ms=wait_ms)
        if self._is_over("the sync", answer.error_code):
            return None
        if not answer.assignment:
            return ConsumerProtocolAssignment(assigned_partitions=[])
        return consumer_protocol.read(ConsumerProtocolAssignment, answer.assignment)

    async def _assignments(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Returns the partitions of each member, decided by this member as the group's leader."""
        subscriptions = {
            member.member_id: (
                member.group_instance_id,
                consumer_protocol.read(ConsumerProtocolSubscription, member.metadata).topics,
            )
            for member in joined.members
        }
        counts = await self._partition_counts({topic for _, topics in subscriptions.values() for topic in topics})
        self._assigned = counts
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=_encoded(partitions))
            for member, partitions in assign_by_range(subscriptions, counts).items()
        ]

    async def _partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """Returns the partition count of each topic, 0 for a missing topic."""
        self._looked_ms = self._cluster.clock.monotonic_ms()
        metadata = await self._cluster.metadata(sorted(topics))
        return {topic.name or "": 0 if topic.error_code else len(topic.partitions) for topic in metadata.topics}

    def _is_over(self, what: str, code: int) -> bool:
        """True if the member must join again. Raises CommandError for an error that joining can't repair."""
        error = error_code(code)
        if error not in REJOIN:
            raise_if(f"{what} in group {self._group}", code)
            return False
        self.must_rejoin = True
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.identity = GroupIdentity()
        return True


def _encoded(partitions: dict[str, list[int]]) -> bytes:
    entries = [
        consumer_protocol.TopicPartition(topic=topic, partitions=indexes) for topic, indexes in partitions.items()
    ]
    return consumer_protocol.write(ConsumerProtocolAssignment(assigned_partitions=entries), SUBSCRIPTION_VERSION)
