"""The rendezvous of a classic group's members: who waits for whom, and for which generation.

    Empty → PreparingRebalance → CompletingRebalance → Stable → PreparingRebalance …

No record has any of it: a rebalance under way ends with the broker that leads it, and its members join anew. Source:
org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from coordinator.group.classic.member import ClassicMember, Strategy
from coordinator.group.classic.stored import StoredGroup, StoredMember
from coordinator.group.records import NO_TIMESTAMP
from protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription, read
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.java_hash import hash_map_order


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
"""The states that may follow each state."""


class Rendezvous:
    """Where the members of a classic group meet. Decisions change it, and `settle` brings it to what was stored."""

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
        """The topics that its consumers read; None if their metadata does not tell."""
        self._supported: dict[str, int] = {}
        """How many members can follow each strategy."""
        self._named: Counter[str] = Counter()
        """How often members name each strategy."""

    @property
    def protocol_type(self) -> str:
        return self.protocol or ""

    @property
    def state_name(self) -> str:
        return self.state.value

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
        return self.protocol == protocol and not self._candidates().isdisjoint(names)

    def select_strategy(self) -> str:
        """The strategy with most votes among those that all members can follow; of several, the first in the order of
        Kafka's map of votes."""
        candidates = self._candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(hash_map_order(votes), key=votes.__getitem__)

    def _candidates(self) -> set[str]:
        """The strategies that all members can follow. One that somebody names twice counts only where there is no
        other: Kafka counts it as two members', and never answers a group that has no other."""
        shared = {name for name, count in self._supported.items() if count == len(self.members)}
        return {name for name in shared if self._named[name] == len(self.members)} or shared

    # Changes.

    def settle(self, stored: StoredGroup) -> None:
        """Ends the rebalance with what its record says: the members, who are those of the record, have their
        assignments, or the group is empty."""
        self.state = STABLE if stored.members else EMPTY
        self.since_ms = stored.since_ms
        self.protocol = stored.protocol_type
        self.generation, self.strategy, self.leader = stored.generation, stored.strategy, stored.leader
        for member_id, member in self.members.items():
            member.assignment = stored.members[member_id].assignment
        self.read_subscriptions()

    def restore(self, stored: StoredGroup) -> None:
        """Fills a new rendezvous with the members of a record, none of whom waits for anything."""
        for member in stored.members.values():
            self.add(restored_member(member, stored.strategy), stored.protocol_type or "")
        self.settle(stored)

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
        names = [name for name, _ in strategies]
        for name in names:
            self._named[name] += change
        for name in set(names):  # a client may name one twice
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


def subscribed_topics(group: Rendezvous) -> frozenset[str] | None:
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


def restored_member(stored: StoredMember, strategy: str | None) -> ClassicMember:
    """Returns a member of a record, which has only what the chosen strategy needs."""
    return ClassicMember(
        stored.member_id,
        instance_id=stored.instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        session_timeout_ms=stored.session_timeout_ms,
        strategies=(Strategy(strategy or "", stored.subscription),),
        assignment=stored.assignment,
    )
