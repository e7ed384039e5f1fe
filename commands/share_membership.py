"""A member of a share group: joins by its first heartbeat, and is told by later ones what it reads (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commands.cluster_client import ClusterClient, CoordinatorKind, draw_id
from commands.errors import raise_if
from commands.share_session import SharePlace
from protocol.errors import ErrorCode, error_code
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

JOINING: Final = 0
LEAVING: Final = -1
"""Epochs of a member that is not in the group yet, and of one that leaves it."""

UNASSIGNED_INTERVAL_MS: Final = 500
"""Between heartbeats of a member that has nothing to read yet: who waits at a terminal is not to wait for the group's
whole interval."""

FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
"""Errors after which a member joins anew."""


class ShareMembership:
    """One member."""

    def __init__(self, cluster: ClusterClient, group: str, topics: Sequence[str]) -> None:
        self.member_id = draw_id()
        self.places: list[SharePlace] = []
        """The partitions that it reads."""
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._epoch = JOINING
        self._interval_ms = UNASSIGNED_INTERVAL_MS
        self._has_asked = False

    async def keep_alive(self) -> None:
        """Joins, and sends heartbeats until cancelled. Raises CommandError."""
        while True:
            await self._heartbeat()
            is_idle = self._epoch == JOINING or not self.places
            await self._cluster.pause(min(self._interval_ms, UNASSIGNED_INTERVAL_MS if is_idle else 1 << 31))

    async def leave(self) -> None:
        """Leaves the group, whose other members are given what this one had."""
        if self._has_asked:  # also one whose first answer it has not waited for
            self._epoch = LEAVING
            await self._ask()

    async def _heartbeat(self) -> None:
        answer = await self._ask()
        if error_code(answer.error_code) in FENCED:
            self._epoch, self.places = JOINING, []
            return
        raise_if(f"group {self._group}", answer.error_code, answer.error_message)
        self._epoch, self._interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self.places = [
                SharePlace(entry.topic_id, index)
                for entry in answer.assignment.topic_partitions
                for index in entry.partitions
            ]

    async def _ask(self) -> ShareGroupHeartbeatResponse:
        self._has_asked = True
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=self._topics if self._epoch == JOINING else None,
        )
        return await self._cluster.coordinated(CoordinatorKind.GROUP, self._group, request, ShareGroupHeartbeatResponse)
