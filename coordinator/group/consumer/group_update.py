"""The steps of decisions on a member of a consumer group. Source: Kafka's GroupMetadataManager (KIP-848, KIP-1263)."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.assignment import Assignment
from coordinator.group.assignors.builtin import ASSIGNORS, configured
from coordinator.group.consumer import records
from coordinator.group.consumer.fencing import DEADLINES
from coordinator.group.consumer.group import ConsumerGroup
from coordinator.group.consumer.member import Member, MemberState
from coordinator.group.consumer.patterns import PatternChange, change_pattern
from coordinator.group.consumer.reconciliation import Claimed, Step, reconcile
from coordinator.group.consumer.subscriptions import Subscriptions
from coordinator.group.consumer.target_assignment import assign
from coordinator.group.modern.requests import check_topic_names
from coordinator.group.modern.topic_ids import TopicIds
from coordinator.group.modern.update import MemberTarget, SubscriptionUpdate
from coordinator.group.records import GroupResult
from coordinator.group.state import Client, GroupState


class GroupUpdate(SubscriptionUpdate[Member, Assignment]):
    """A change of one member of a consumer group."""

    group: ConsumerGroup

    def __init__(
        self, state: GroupState, group: ConsumerGroup, client: Client, result: GroupResult, now_ms: int
    ) -> None:
        super().__init__(state, group, result, now_ms)
        self.client = client

    def settle(self, before: Member, after: Member, claimed: Claimed) -> Member:
        """Applies a member's change or heartbeat, with all its consequences. Raises INVALID_REQUEST,
        INVALID_REGULAR_EXPRESSION, and FENCED_MEMBER_EPOCH as `reconcile` does."""
        changed, epoch = self.subscribe(before, after)
        return self.move(after, self.target(before, after, epoch), changed, claimed)

    def subscribe(self, before: Member, after: Member) -> tuple[bool, int]:
        """Writes the member's description. Returns True if its subscription changed, and the group's epoch after the
        decision."""
        names_changed = after.topic_names != before.topic_names
        if after.topic_names - before.topic_names:
            check_topic_names(self._subscriptions(before, after).by_name)
        votes_changed = after.server_assignor != before.server_assignor and not after.uses_classic_protocol
        assignor_changed = votes_changed and self.assignor(before, after) != self.assignor()
        if after != before:
            self.result.records.append(records.COMMON.member(self.group.group_id, after))
        pattern = change_pattern(self.state, self.group, before, after, self.client, self.result, self.now_ms)
        bump = names_changed or assignor_changed or pattern is PatternChange.CHANGED_AND_RESOLVED
        epoch = self.epoch(before, after, bump=bump)
        if self.group.has_partition_metadata:
            self.result.records.append(records.partition_metadata_gone(self.group.group_id))
        return names_changed or pattern is not PatternChange.NONE, epoch

    def subscribed(self, before: Member, after: Member) -> set[str]:
        return self._subscriptions(before, after).topics

    def _subscriptions(self, before: Member, after: Member) -> Subscriptions:
        """Returns the members' subscriptions after the change."""
        group = self.group
        subscriptions = group.subscriptions.copy()
        subscriptions.replace(before, after)
        if before.regex and before.regex != after.regex and group.subscriptions.patterns[before.regex] == 1:
            orphan = group.resolved.get(before.regex)
            subscriptions.resolve(orphan.topics if orphan else (), ())
        return subscriptions

    @property
    def assignment_interval_ms(self) -> int:
        return self.state.environment.group_config(self.group.group_id).consumer_assignment_interval_ms

    def assigned(self, before: Member, after: Member) -> Mapping[str, Assignment]:
        group = self.group
        assignor = ASSIGNORS.get(self.assignor(before, after)) or ASSIGNORS[self._default_assignor]
        is_new = after.member_id not in group.members and group.static_member(after.instance_id) is None
        alike = self._subscriptions(before, after).are_alike(len(group.members) + is_new)
        return assign(group, after, alike, assignor, self.state.environment.topics)

    def assignor(self, before: Member | None = None, after: Member | None = None) -> str:
        """Returns the name of the assignor that the members prefer, once a member has changed."""
        return self.group.preferred_assignor(before, after) or self._default_assignor

    @property
    def _default_assignor(self) -> str:
        return configured(self.state.settings.group_consumer_assignors)[0]

    def move(
        self, member: Member, target: MemberTarget[Assignment], subscription_changed: bool, claimed: Claimed
    ) -> Member:
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
            self.result.records.append(records.COMMON.current(group.group_id, moved))
            if not moved.uses_classic_protocol:  # classic members have deadlines to join and to sync
                is_revoking = moved.state is MemberState.UNREVOKED_PARTITIONS
                self.result.effect(
                    DEADLINES.rebalance, self.state, group.group_id, moved, self.now_ms, is_revoking=is_revoking
                )
        return moved
