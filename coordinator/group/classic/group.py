"""A group whose members agree among themselves who reads what: the broker only leads them through rebalances.

    Empty → PreparingRebalance → CompletingRebalance → Stable → PreparingRebalance …

What a record keeps (generation, strategy, leader, members with their assignments) changes when the record is applied. A
rebalance under way is of the moment: whoever loads the group finds it as the last record left it, and its members join
anew. Source: org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from enum import Enum

from coordinator.group.classic.member import ClassicMember, Strategy
from coordinator.group.group import CommitCheck, GroupType, any_partition
from coordinator.group.offsets.offsets import Offset
from coordinator.group.records import NO_TIMESTAMP, GroupRecord, classic_group_gone
from coordinator.group.timers import Timers
from protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription, read
from protocol.errors import ErrorCode, KafkaError, ProtocolError


class ClassicState(Enum):
    """Where a group is in its life, as Kafka prints it; Dead is what others are told of a group that is not there."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicState

TRANSITIONS: dict[ClassicState, frozenset[ClassicState]] = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({COMPLETING_REBALANCE, EMPTY}),
    COMPLETING_REBALANCE: frozenset({STABLE, PREPARING_REBALANCE}),
    STABLE: frozenset({PREPARING_REBALANCE}),
    DEAD: frozenset(),
}
"""What may follow what."""


class ClassicGroup:
    """A classic group; one that only has offsets ("simple") has no protocol type and never a member."""

    def __init__(self, group_id: str, state: ClassicState = EMPTY, since_ms: int = NO_TIMESTAMP) -> None:
        self.group_id = group_id
        self.state = state
        self.since_ms = since_ms
        """When the present state began."""
        self.protocol: str | None = None
        """The protocol type: what its members use the group for, "consumer" or "connect"."""
        self.strategy: str | None = None
        """The assignment strategy of this generation ("protocol name")."""
        self.generation = 0
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending_joins: set[str] = set()
        """Member ids that were given out and whose owners have yet to join with them (KIP-394)."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have yet to ask for their assignment."""
        self.joining = 0
        """How many members wait for the rebalance to complete."""
        self.initial_rebalance = False
        """The rebalance under way began with an empty group, and is delayed (KIP-134)."""
        self.new_member_added = False
        """Someone new came while the first rebalance was delayed, which prolongs the delay."""
        self.subscribed_topics: frozenset[str] | None = None
        """What its consumers read; None if that is not known."""
        self._supported: dict[str, int] = {}
        """How many members can follow each strategy."""

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id!r}, {self.state_name}, generation {self.generation}, {list(self.members)})"

    # What every group has (coordinator.group.group.Group).

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def protocol_type(self) -> str:
        return self.protocol or ""

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def expires(self) -> bool:
        return True

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def check_offset_commit(
        self, member_id: str, instance_id: str | None, generation_or_epoch: int, version: int, *, transactional: bool
    ) -> CommitCheck:
        if generation_or_epoch < 0 and self.state is EMPTY:
            return any_partition  # whoever has no group management, or an administrator
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation_or_epoch != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)  # the group has members: they alone may commit
        if not transactional and self.state is COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return any_partition

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anyone may fetch."""

    def check_offset_delete(self) -> None:
        if self.state is not EMPTY and not self.is_of_consumers:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state is not EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def retained_from_ms(self, offset: Offset) -> int | None:
        if self.protocol is None:
            return offset.commit_timestamp_ms
        if self.state is EMPTY:
            return offset.commit_timestamp_ms if self.since_ms == NO_TIMESTAMP else self.since_ms
        if self.is_of_consumers and self.subscribed_topics is not None and self.state is STABLE:
            return offset.commit_timestamp_ms
        return None

    def tombstones(self) -> list[GroupRecord]:
        return [classic_group_gone(self.group_id)]

    def tickets(self) -> Iterator[Hashable]:
        for member in self.members.values():
            yield from (ticket for ticket in (member.join_ticket, member.sync_ticket) if ticket is not None)

    def cancel_timers(self, timers: Timers) -> None:
        timers.cancel(join_key(self.group_id))
        timers.cancel(sync_key(self.group_id))
        for member_id in (*self.members, *self.pending_joins):
            timers.cancel(session_key(self.group_id, member_id))

    # What there is to know of it.

    @property
    def is_of_consumers(self) -> bool:
        """Whether its members' metadata is that of consumers, which the broker can read."""
        return self.protocol == PROTOCOL_TYPE

    @property
    def is_simple(self) -> bool:
        """Whether nobody ever joined it."""
        return self.protocol is None and self.state is EMPTY and not self.pending_joins

    @property
    def everyone_joined(self) -> bool:
        return self.joining == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID where another has taken the instance id over (KIP-345)."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def supports(self, protocol: str, strategies: Iterable[str]) -> bool:
        """Whether someone with these strategies may join: there is one that all members share."""
        names = list(strategies)
        if self.state is EMPTY:
            return bool(protocol and names)
        return self.protocol == protocol and any(self._supported.get(name, 0) == len(self.members) for name in names)

    def select_strategy(self) -> str:
        """The strategy with most votes among those that all members can follow."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    # Changes that are of the moment.

    def transition(self, state: ClassicState, now_ms: int) -> None:
        """Be in another state from now on; an assertion if it may not follow the present one."""
        assert state in TRANSITIONS[self.state], f"group {self.group_id}: {state.value} after {self.state.value}"
        self.state, self.since_ms = state, now_ms

    def add(self, member: ClassicMember, protocol: str) -> None:
        """Take a member in; the first one gives the group its protocol type, and leads it."""
        if not self.members:
            self.protocol = protocol
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count(member.strategies, 1)
        self.joining += member.is_joining
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Let a member go, pending or not; another one leads if it led."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.strategies, -1)
            self.joining -= member.is_joining
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)
        return member

    def rename(self, old: ClassicMember, member_id: str) -> ClassicMember:
        """Put the same member under another id into its place; it waits for nothing."""
        renamed = ClassicMember(
            member_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            strategies=old.strategies,
            assignment=old.assignment,
        )
        leads = self.leader == old.member_id
        self.remove(old.member_id)
        self.add(renamed, self.protocol_type)
        if leads:
            self.leader = member_id
        return renamed

    def change_strategies(self, member: ClassicMember, strategies: tuple[Strategy, ...]) -> None:
        """The member joined again, and knows these strategies now."""
        self._count(member.strategies, -1)
        self._count(strategies, 1)
        member.strategies = strategies

    def _count(self, strategies: Iterable[Strategy], change: int) -> None:
        for name in {name for name, _ in strategies}:  # a client may name one twice
            self._supported[name] = self._supported.get(name, 0) + change

    def elect_joined_leader(self) -> bool:
        """Have a leader who has joined, if anyone has; False if there is none."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.is_joining:
            return leader is not None
        joined = next((member.member_id for member in self.members.values() if member.is_joining), None)
        self.leader = joined or self.leader
        return joined is not None

    def read_subscriptions(self) -> None:
        """Find out what its consumers read, from what they said for this generation's strategy."""
        self.subscribed_topics = subscribed_topics(self)


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics of all members; None if they are no consumers, or if one cannot be understood."""
    if not group.is_of_consumers:
        return None
    if not group.members:
        return frozenset()
    if group.strategy is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(read(ConsumerProtocolSubscription, member.metadata(group.strategy)).topics)
        except ProtocolError:
            return None
    return frozenset(topics)


def join_key(group_id: str) -> tuple[str, str]:
    """The timer of a rebalance."""
    return "join", group_id


def sync_key(group_id: str) -> tuple[str, str]:
    """The timer of members that have yet to sync."""
    return "sync", group_id


def session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """The timer of a member's session, or of a pending member."""
    return "session", group_id, member_id
