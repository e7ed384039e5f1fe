"""A decision on a consumer group, and the steps that most decisions share.

A member that joins or changes may change the group's subscriptions and so its epoch; a new epoch needs a new target
assignment; and the member takes one step towards the target. Source: Kafka's GroupMetadataManager (KIP-848, KIP-1263).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator.group.assignors.builtin import ASSIGNORS, configured
from coordinator.group.consumer import records
from coordinator.group.consumer.fencing import stop_rebalance_deadline, watch_rebalance
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member, MemberState
from coordinator.group.consumer.patterns import PatternChange, change_pattern
from coordinator.group.consumer.reconciliation import Claimed, Step, reconcile
from coordinator.group.consumer.subscriptions import Subscriptions
from coordinator.group.consumer.target_assignment import MemberTarget, assign
from coordinator.group.draft import Draft
from coordinator.group.modern.group import Checked, note_check
from coordinator.group.modern.records import changed_targets
from coordinator.group.modern.topic_ids import TopicIds
from coordinator.group.state import Client, GroupState

ANY_TIME: Final = 0
"""The time of a target assignment that was never computed here: it may be replaced at once."""


class Epoch(NamedTuple):
    """The group's epoch after the decision, with the subscriptions and the number of its members."""

    number: int
    subscriptions: Subscriptions
    members: int


class GroupUpdate:
    """A change of one member of a group. `group` may be new, and created by this decision's records."""

    __slots__ = ("client", "draft", "group", "now_ms", "state")

    def __init__(self, state: GroupState, group: ConsumerGroup, client: Client, draft: Draft, now_ms: int) -> None:
        self.state = state
        self.group = group
        self.client = client
        self.draft = draft
        self.now_ms = now_ms

    def settle(self, before: Member, after: Member, claimed: Claimed) -> Member:
        """Applies a member's change or heartbeat, with all its consequences. Raises INVALID_REGULAR_EXPRESSION, and
        FENCED_MEMBER_EPOCH as `reconcile` does."""
        changed, epoch = self.subscribe(before, after)
        return self.move(after, self.target(before, after, epoch), changed, claimed)

    def subscribe(self, before: Member, after: Member) -> tuple[bool, Epoch]:
        """Writes the member's description. Returns True if its subscription changed, and the group's new epoch."""
        names_changed = after.topic_names != before.topic_names
        if after != before:
            self.draft.records.append(records.member(self.group.group_id, after))
        pattern = change_pattern(self.state, self.group, before, after, self.client, self.draft, self.now_ms)
        bump = names_changed or pattern is PatternChange.CHANGED_AND_RESOLVED
        return names_changed or pattern is not PatternChange.NONE, self._epoch(before, after, bump)

    def _epoch(self, before: Member, after: Member, bump: bool) -> Epoch:
        """Returns the next epoch if the member's change needs it, or if the topics have changed since the last
        check."""
        group, watch = self.group, self.state.watch
        if not bump and group.checked.changes == watch.changes and group.epoch >= group.checked.group_epoch:
            return Epoch(group.epoch, group.subscriptions, len(group.members))
        subscriptions = group.subscriptions.copy()
        subscriptions.replace(before, after)
        if before.regex and before.regex != after.regex and group.subscriptions.patterns[before.regex] == 1:
            orphan = group.resolved.get(before.regex)
            subscriptions.resolve(orphan.topics if orphan else (), ())
        metadata_hash = watch.group_hash(subscriptions.topics)
        epoch = group.epoch
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            self.draft.records.append(records.COMMON.epoch(group.group_id, epoch, metadata_hash))
        self.draft.effect(note_check, self.state, group.group_id, Checked(watch.changes, epoch))
        if group.has_partition_metadata:
            self.draft.records.append(records.partition_metadata_gone(group.group_id))
        is_new = after.member_id not in group.members and group.static_member(after.instance_id) is None
        return Epoch(epoch, subscriptions, len(group.members) + is_new)

    def last_target(self, member: Member) -> MemberTarget:
        """Returns the member's present target."""
        return MemberTarget(self.group.assignment_epoch, self.group.target_of(member))

    def target(self, before: Member, after: Member, epoch: Epoch) -> MemberTarget:
        """Returns the member's target, from a new target assignment if the epoch needs it and the last is old
        enough."""
        group = self.group
        if group.assignment_epoch >= epoch.number or not self._may_assign():
            return self.last_target(after)
        default = configured(self.state.settings.group_consumer_assignors)[0]
        name = group.preferred_assignor(before, after)
        assignor = ASSIGNORS.get(name or default) or ASSIGNORS[default]
        alike = epoch.subscriptions.are_alike(epoch.members)
        targets = assign(group, after, alike, assignor, self.state.environment.topics)
        for member_id, target in changed_targets(group.targets, targets).items():
            self.draft.records.append(records.target(group.group_id, member_id, target))
        self.draft.records.append(records.COMMON.target_epoch(group.group_id, epoch.number, self.now_ms))
        return MemberTarget(epoch.number, targets[after.member_id])

    def _may_assign(self) -> bool:
        interval_ms = self.state.environment.group_config(self.group.group_id).consumer_assignment_interval_ms
        assigned_at_ms = self.group.assigned_at_ms
        return assigned_at_ms == ANY_TIME or not interval_ms or self.now_ms >= assigned_at_ms + interval_ms

    def move(self, member: Member, target: MemberTarget, subscription_changed: bool, claimed: Claimed) -> Member:
        """Moves the member one step towards its target, and sets its deadline to give up partitions."""
        if not subscription_changed and member.is_reconciled_to(target.epoch):
            return member
        group = self.group
        step = Step(
            target_epoch=target.epoch,
            target=target.assignment,
            topics=TopicIds(self.state.environment.topics).of(group.topics_of(member)),
            subscription_changed=subscription_changed,
            claimed=claimed,
            is_owned=group.is_held,
        )
        moved = reconcile(member, step)
        if moved != member:
            self.draft.records.append(records.current(group.group_id, moved))
            if not moved.uses_classic_protocol:  # classic members have deadlines to join and to sync
                self._rebalance_deadline(moved)
        return moved

    def _rebalance_deadline(self, member: Member) -> None:
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.draft.effect(watch_rebalance, self.state, self.group.group_id, member, self.now_ms)
        else:
            self.draft.effect(stop_rebalance_deadline, self.state, self.group.group_id, member.member_id)
