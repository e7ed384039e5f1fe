"""A member of a share group: joins by its first heartbeat, and is told by later ones what it reads (KIP-932)."""

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
        self._patience = Patience(cluster.clock)
        self._missed_answer = False
        """True when an answer was lost, and with it maybe an assignment, which is told once."""

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
        """Leaves the group, whose other members are given what this one had."""
        if self._has_asked:  # also one whose first answer it has not waited for
            self._epoch = LEAVING
            with suppress(*LOST):  # the end of its session will do
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
        """Joins again by the next heartbeat. A member that is fenced while it joins is in the group by a join whose
        answer was lost, and has to leave first: its coordinator goes on fencing it until its session is over."""
        if self._epoch == JOINING:
            self._epoch = LEAVING
            try:
                await self._ask()
            finally:
                self._epoch = JOINING
        self._epoch, self.places = JOINING, []

    async def _ask(self) -> ShareGroupHeartbeatResponse:
        """Asks the coordinator; tells it all where it may have told this member something that did not arrive, upon
        which it tells all in its turn (the full request of KIP-848)."""
        self._has_asked = True
        tells_all = self._epoch == JOINING or (self._missed_answer and self._epoch != LEAVING)
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=self._topics if tells_all else None,
        )
        return await self._cluster.of_group(self._group, request, ShareGroupHeartbeatResponse)
