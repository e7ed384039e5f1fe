"""The timers of a group's members.

    session    no heartbeat for this long: the member is fenced
    rebalance  it did not give partitions up in time
    join       it uses the classic protocol, and did not rejoin in time
    sync       it uses the classic protocol, and did not fetch its assignment in time

Source: the timer keys of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from enum import Enum

from coordinator.group.timers import Timers


class MemberDeadline(Enum):
    """A deadline that a member can miss: its timer's name, and the end of the sentence "Member … was fenced because
    …"."""

    SESSION = "member session", "the member session expired"
    REBALANCE = "member rebalance", "it did not revoke its partitions in time"
    JOIN = "member join", "the classic member failed to join within the rebalance timeout"
    SYNC = "member sync", "the member failed to sync within timeout"

    def __init__(self, timer: str, reason: str) -> None:
        self.timer = timer
        self.reason = reason


def key(deadline: MemberDeadline, group_id: str, member_id: str) -> tuple[str, str, str]:
    """Returns the key of the timer."""
    return deadline.timer, group_id, member_id


def cancel_all(timers: Timers, group_id: str, member_id: str) -> None:
    """Cancels all timers of a member that is gone."""
    for deadline in MemberDeadline:
        timers.cancel(key(deadline, group_id, member_id))
