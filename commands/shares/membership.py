"""A member of a share group: its first heartbeat joins, the answers to later ones bring its assignment (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from commands.client.cluster_client import ClusterClient, draw_id
from commands.client.patience import LOST, Patience
from commands.errors import raise_if
from commands.shares.session import SharePlace
from protocol.errors import ErrorCode, error_code
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

JOINING: Final = 0
LEAVING: Final = -1
"""The member epochs that join and leave a group."""

UNASSIGNED_INTERVAL_MS: Final = 500
"""Heartbeat interval of a member without partitions, shorter than the group's, because a user waits at the terminal."""

FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
"""Errors after which a member joins again."""


class ShareMembership:
    """One member of a share group."""

    def __init__(self, cluster: ClusterClient, group: str, topics: Sequence[str]) -> None:
        self.member_id = draw_id()
        self.places: list[SharePlace] = []
        """The member's assigned partitions."""
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._epoch = JOINING
        self._interval_ms = UNASSIGNED_INTERVAL_MS
        self._has_asked = False
        self._patience = Patience(cluster.clock)
        self._missed_answer = False
        """True if an answer was lost. It may have had an assignment, which the coordinator sends once."""

    async def keep_alive(self) -> None:
        """Joins, and sends heartbeats until cancelled. Raises CommandError, PeerError."""
        while True:
            try:
                await self._heartbeat()
                self._patience.answered()
            except LOST as error:
                self._missed_answer = True
                self._patience.lost(error)
            is_idle = self._epoch == JOINING or not self.places
            await self._cluster.pause(min(self._interval_ms, UNASSIGNED_INTERVAL_MS if is_idle else 1 << 31))

    async def leave(self) -> None:
        """Leaves the group, so that its partitions go to other members."""
        if self._has_asked:  # also if the first answer has not arrived
            self._epoch = LEAVING
            with suppress(*LOST):  # then its session expires
                await self._ask()

    async def _heartbeat(self) -> None:
        answer = await self._ask()
        if error_code(answer.error_code) in FENCED:
            await self._begin_anew()
            return
        raise_if(f"group {self._group}", answer.error_code, answer.error_message)
        self._missed_answer = False
        self._epoch, self._interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self.places = [
                SharePlace(entry.topic_id, index)
                for entry in answer.assignment.topic_partitions
                for index in entry.partitions
            ]

    async def _begin_anew(self) -> None:
        """Joins again by the next heartbeat. A member that is fenced while it joins is already in the group, through a
        join whose answer was lost. It must leave first, or the coordinator fences it until its session expires."""
        if self._epoch == JOINING:
            self._epoch = LEAVING
            try:
                await self._ask()
            finally:
                self._epoch = JOINING
        self._epoch, self.places = JOINING, []

    async def _ask(self) -> ShareGroupHeartbeatResponse:
        """Sends a heartbeat. After a lost answer it sends the full request of KIP-848, which the coordinator answers
        with the whole assignment."""
        self._has_asked = True
        tells_all = self._epoch == JOINING or (self._missed_answer and self._epoch != LEAVING)
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=self._topics if tells_all else None,
        )
        return await self._cluster.of_group(self._group, request, ShareGroupHeartbeatResponse)
