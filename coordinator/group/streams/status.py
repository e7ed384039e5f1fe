"""The statuses of a heartbeat's response: conditions of the group that its members must know."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from protocol.messages import streams_group_heartbeat as heartbeat


class StatusCode(IntEnum):
    """The codes of statuses (StreamsGroupHeartbeatResponse.Status)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class GroupStatus(NamedTuple):
    """A status, with its text for the application's log."""

    code: StatusCode
    detail: str

    def written(self) -> heartbeat.Status:
        """Returns the status for a response."""
        return heartbeat.Status(status_code=int(self.code), status_detail=self.detail)


class MisconfiguredError(Exception):
    """A topology can't have tasks until the cluster's topics change."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = GroupStatus(code, detail)
