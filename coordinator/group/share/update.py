"""The steps of decisions on a member of a share group. Source: Kafka's GroupMetadataManager (KIP-932)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from coordinator.group.assignment import Assignment
from coordinator.group.assignors.simple import Subscriber, assign
from coordinator.group.modern.requests import check_topic_names
from coordinator.group.modern.topic_ids import TopicIds
from coordinator.group.modern.update import MemberTarget, SubscriptionUpdate
from coordinator.group.share import records
from coordinator.group.share.group import ShareGroup
from coordinator.group.share.initialization import is_assignment_pending
from coordinator.group.share.member import ShareMember


class ShareUpdate(SubscriptionUpdate[ShareMember, Assignment]):
    """A change of one member of a share group."""

    group: ShareGroup

    def settle(self, before: ShareMember, after: ShareMember) -> tuple[int, ShareMember]:
        """Applies a member's change or heartbeat, with all its consequences. Returns the group's epoch after the
        decision, and the member. Raises INVALID_REQUEST."""
        group = self.group
        if after != before:
            self.result.records.append(records.COMMON.member(group.group_id, after))
        bump = after.topic_names != before.topic_names
        if after.topic_names - before.topic_names:
            check_topic_names(self.subscribed(before, after))
        if group.assignment_epoch >= group.epoch:
            bump = bump or is_assignment_pending(group)
        epoch = self.epoch(before, after, bump=bump)
        target = self.target(before, after, epoch)
        return epoch, self._move(after, target, is_new_epoch=epoch != group.epoch)

    def subscribed(self, before: ShareMember, after: ShareMember) -> Counter[str]:
        return self.group.subscriptions_with(before, after)

    @property
    def assignment_interval_ms(self) -> int:
        return self.state.environment.group_config(self.group.group_id).share_assignment_interval_ms

    def may_assign(self) -> bool:
        """True also while the group's first topics are not assigned yet: they are assigned without delay."""
        group = self.group
        return super().may_assign() or (not any(group.targets.values()) and is_assignment_pending(group))

    def assigned(self, before: ShareMember, after: ShareMember) -> Mapping[str, Assignment]:
        group = self.group
        ids = TopicIds(self.state.environment.topics)
        members = {**group.members, after.member_id: after}
        subscribers = {
            member_id: Subscriber(ids.of(member.topic_names), group.target(member_id))
            for member_id, member in members.items()
        }
        alike = len({member.topic_names for member in members.values()}) == 1
        return assign(subscribers, group.topics.partitions, alike=alike)

    def _move(self, member: ShareMember, target: MemberTarget[Assignment], *, is_new_epoch: bool) -> ShareMember:
        """Returns the member with its target assignment, limited to the topics that it subscribes to."""
        if not is_new_epoch and member.member_epoch == target.epoch:
            return member
        topics = TopicIds(self.state.environment.topics).of(member.topic_names)
        assigned = {topic_id: indexes for topic_id, indexes in target.assignment.items() if topic_id in topics}
        moved = member._replace(assigned=assigned)
        if member.member_epoch != target.epoch:
            moved = moved._replace(member_epoch=target.epoch, previous_member_epoch=member.member_epoch)
        if moved != member:
            self.result.records.append(records.COMMON.current(self.group.group_id, moved))
        return moved
