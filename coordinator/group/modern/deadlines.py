"""Fences members that miss a deadline; the methods that set and cancel deadlines are effects.

Source: GroupMetadataManager's schedule…Timeout methods (KIP-848, KIP-932, KIP-1071).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from coordinator.engine.result import Result
from coordinator.group.modern.group import ModernGroup
from coordinator.group.modern.records import ModernMember
from coordinator.group.modern.timers import MemberDeadline, key
from coordinator.group.records import GroupResult
from coordinator.group.state import GroupState

M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")


class RevokingMember(ModernMember, Protocol):
    """A member that may have to give up partitions or tasks within a timeout."""

    @property
    def rebalance_timeout_ms(self) -> int: ...


class MemberDeadlines(Generic[M, T]):
    """The deadlines of one group type, whose members are of class M and have targets of class T."""

    __slots__ = ("_fence", "_kind")

    def __init__(
        self,
        kind: type[ModernGroup[M, T]],
        fence: Callable[[GroupState, ModernGroup[M, T], M, GroupResult, int], None],
    ) -> None:
        """`fence` writes the records that remove a member: (state, group, member, result, now_ms)."""
        self._kind = kind
        self._fence = fence

    def watch(
        self, state: GroupState, deadline: MemberDeadline, group_id: str, member_id: str, deadline_ms: int
    ) -> None:
        """Sets a deadline, or extends it."""
        timer = key(deadline, group_id, member_id)
        if not state.timers.postpone(timer, deadline_ms):
            state.timers.set(
                timer, deadline_ms, lambda now_ms: self.expire(state, deadline, group_id, member_id, now_ms)
            )

    def rebalance(
        self, state: GroupState, group_id: str, member: RevokingMember, now_ms: int, *, is_revoking: bool
    ) -> None:
        """Fences the member if it is still at this epoch when its rebalance timeout is over; cancels the deadline of a
        member that has nothing to give up."""
        member_id, epoch = member.member_id, member.member_epoch
        timer = key(MemberDeadline.REBALANCE, group_id, member_id)
        if not is_revoking:
            state.timers.cancel(timer)
            return

        def over(then_ms: int) -> GroupResult:
            group = state.groups.get(group_id)
            late = group.members.get(member_id) if isinstance(group, self._kind) else None
            if late is None or late.member_epoch != epoch:
                return Result()
            return self.expire(state, MemberDeadline.REBALANCE, group_id, member_id, then_ms)

        state.timers.set(timer, now_ms + member.rebalance_timeout_ms, over)

    def expire(
        self, state: GroupState, deadline: MemberDeadline, group_id: str, member_id: str, now_ms: int
    ) -> GroupResult:
        """Fences a member that missed a deadline; does nothing if it is gone already."""
        result: GroupResult = Result()
        group = state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, self._kind) else None
        if isinstance(group, self._kind) and member is not None:
            result.effect(state.note, "member fenced", group=group_id, member=member_id, reason=deadline.reason)
            self._fence(state, group, member, result, now_ms)
        return result
