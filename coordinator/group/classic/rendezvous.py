"""The rendezvous of a classic group's members: the state of their rebalance, and the answers that they wait for.

Empty → PreparingRebalance → CompletingRebalance → Stable → PreparingRebalance …

No record has this state: if another broker becomes the coordinator, the rebalance is over, and the members join again.
Source: org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableMapping
from enum import Enum
from typing import Final, Self

from coordinator.group.classic.forked_dict import ForkedDict
from coordinator.group.classic.member import ClassicMember, Strategy
from coordinator.group.classic.stored import StoredGroup, StoredMember
from coordinator.group.records import NO_TIMESTAMP
from protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription, read
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.java_hash import hash_map_order


class ClassicState(Enum):
    """The state of a group, as Kafka prints it; Dead is reported for a group that doesn't exist."""

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


TABLES: Final = ("members", "static_members", "pending_joins", "pending_syncs", "_supported", "_named")
"""The attributes that are dicts."""


class Rendezvous:
    """The members of a classic group and the state of their rebalance.

    A decision changes a `fork`, an effect then makes the group `take` the changes, and `settle` sets the stored state.
    """

    def __init__(self, group_id: str, state: ClassicState = EMPTY, since_ms: int = NO_TIMESTAMP) -> None:
        self.group_id = group_id
        self.state = state
        self.since_ms = since_ms
        """The time when the present state began."""
        self.protocol: str | None = None
        """The protocol type: the members' use of the group, "consumer" or "connect"."""
        self.strategy: str | None = None
        """The assignment strategy of this generation ("protocol name")."""
        self.generation = 0
        self.leader: str | None = None
        self.members: MutableMapping[str, ClassicMember] = {}
        self.static_members: MutableMapping[str, str] = {}
        """Member ids by instance id."""
        self.pending_joins: MutableMapping[str, None] = {}
        """Member ids that clients got and have not joined with yet (KIP-394)."""
        self.pending_syncs: MutableMapping[str, None] = {}
        """Members of this generation that have not synced yet."""
        self.joining = 0
        """The number of members that wait for the rebalance to complete."""
        self.initial_rebalance = False
        """True if the present rebalance began with an empty group, and is delayed (KIP-134)."""
        self.new_member_added = False
        """True if a new member came during the delay of the first rebalance, which prolongs the delay."""
        self.subscribed_topics: frozenset[str] | None = None
        """The topics that its consumers read; None if their metadata doesn't say."""
        self._supported: MutableMapping[str, int] = {}
        """The number of members that support each strategy."""
        self._named: MutableMapping[str, int] = {}
        """The number of times that members name each strategy."""

    def fork(self) -> Self:
        """Returns a fork for a decision to change; this rendezvous stays unchanged."""
        twin = object.__new__(type(self))
        attributes = vars(twin)
        attributes.update(vars(self))
        for name in TABLES:
            attributes[name] = ForkedDict(attributes[name])
        return twin

    def take(self, fork: Self) -> None:
        """Takes over the changes of a fork."""
        own, attributes = vars(self), dict(vars(fork))
        for name in TABLES:
            if type(attributes[name]) is ForkedDict:
                attributes[name].merge_into(own[name])
                attributes[name] = own[name]
        own.update(attributes)

    def edit(self, member_id: str) -> ClassicMember:
        """Returns a member to change: in a fork, the fork's own copy."""
        member = self.members[member_id]
        if type(self.members) is ForkedDict and not self.members.has_own(member_id):
            member = self.members[member_id] = member.copy()
        return member

    @property
    def protocol_type(self) -> str:
        return self.protocol or ""

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_of_consumers(self) -> bool:
        """True if the members are consumers, whose metadata the broker can read."""
        return self.protocol == PROTOCOL_TYPE

    @property
    def everyone_joined(self) -> bool:
        return self.joining == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id now (KIP-345)."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def supports(self, protocol: str, strategies: Iterable[str]) -> bool:
        """True if a member with these strategies may join: all members must share one of them."""
        names = list(strategies)
        if self.state is EMPTY:
            return bool(protocol and names)
        return self.protocol == protocol and not self._candidates().isdisjoint(names)

    def select_strategy(self) -> str:
        """Returns the strategy with the most votes among the strategies that all members support. Among equals it
        returns the first in the order of Kafka's map of votes."""
        candidates = self._candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(hash_map_order(votes), key=votes.__getitem__)

    def _candidates(self) -> set[str]:
        """Returns the strategies that all members support. A strategy that a member names twice counts only if there is
        no other: Kafka counts it as the strategy of two members, and never answers a group without any other strategy.
        """
        shared = {name for name, count in self._supported.items() if count == len(self.members)}
        return {name for name in shared if self._named[name] == len(self.members)} or shared

    # Changes.

    def settle(self, stored: StoredGroup) -> None:
        """Ends the rebalance with the content of its record: the members get the assignments in the record, or the
        group is empty."""
        self.state = STABLE if stored.members else EMPTY
        self.since_ms = stored.since_ms
        self.protocol = stored.protocol_type
        self.generation, self.strategy, self.leader = stored.generation, stored.strategy, stored.leader
        for member_id, member in self.members.items():
            member.assignment = stored.members[member_id].assignment
        self.read_subscriptions()

    def restore(self, stored: StoredGroup) -> None:
        """Fills a new rendezvous with the members of a record. None of them has a waiting request."""
        for member in stored.members.values():
            self.add(restored_member(member, stored.strategy), stored.protocol_type or "")
        self.settle(stored)

    def transition(self, state: ClassicState, now_ms: int) -> None:
        """Changes the state. Raises AssertionError if the state may not follow the present state."""
        assert state in TRANSITIONS[self.state], f"group {self.group_id}: {state.value} after {self.state.value}"
        self.state, self.since_ms = state, now_ms

    def add(self, member: ClassicMember, protocol: str) -> None:
        """Adds a member; the first sets the group's protocol type, and leads it."""
        if not self.members:
            self.protocol = protocol
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count(member.strategies, 1)
        self.joining += member.is_joining
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Removes a member, pending or not; if it was the leader, another member becomes the leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.strategies, -1)
            self.joining -= member.is_joining
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def rename(self, old: ClassicMember, member_id: str) -> ClassicMember:
        """Changes a member's id; the renamed member has no waiting requests."""
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
        """Sets a member's strategies after it joined again."""
        self._count(member.strategies, -1)
        self._count(strategies, 1)
        member.strategies = strategies

    def _count(self, strategies: Iterable[Strategy], change: int) -> None:
        names = [name for name, _ in strategies]
        for name in names:
            self._named[name] = self._named.get(name, 0) + change
        for name in set(names):  # a client may name a strategy twice
            self._supported[name] = self._supported.get(name, 0) + change

    def elect_joined_leader(self) -> bool:
        """Elects a leader that has joined. Returns False if no member has joined."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.is_joining:
            return leader is not None
        joined = next((member.member_id for member in self.members.values() if member.is_joining), None)
        self.leader = joined or self.leader
        return joined is not None

    def read_subscriptions(self) -> None:
        """Reads the topics of its consumers from their metadata for this generation's strategy."""
        self.subscribed_topics = subscribed_topics(self)


def subscribed_topics(group: Rendezvous) -> frozenset[str] | None:
    """Returns the topics of all members; None if they are not consumers, or if a member's metadata is malformed."""
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
    """Returns a member of a record, which has only the metadata of the chosen strategy."""
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
