"""The deadlines of a consumer group's members.

    session    no heartbeat for this long: the member is gone
    rebalance  it did not give partitions up in time
    join       it speaks the classic protocol, and did not rejoin in time
    sync       likewise, and did not fetch its assignment in time

Source: the timer keys of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from enum import Enum

from coordinator.group.timers import Timers


class Deadline(Enum):
    """What a member can miss; the words complete "Member … was fenced because …"."""

    SESSION = "the member session expired"
    REBALANCE = "it failed to give its partitions up in time"
    JOIN = "the classic member failed to join within the rebalance timeout"
    SYNC = "the member failed to sync within timeout"


Key = tuple[Deadline, str, str]


def key(deadline: Deadline, group_id: str, member_id: str) -> Key:
    """What the timer is set under."""
    return deadline, group_id, member_id


def cancel_all(timers: Timers, group_id: str, member_id: str) -> None:
    """The member is gone."""
    for deadline in Deadline:
        timers.cancel(key(deadline, group_id, member_id))
