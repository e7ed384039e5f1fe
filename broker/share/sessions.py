"""Share sessions: the partitions that a member fetches, so that its requests name only changes.

A session belongs to a group member and to the connection that opened it. When the connection closes, the session ends,
and the member's acquired records become available again.

Source: ShareSessionCache, ShareSession (KIP-932).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.request.context import ClientConnection
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 0x7FFFFFFF

MAX_MEMBER_ID_LENGTH: Final = 36
"""A UUID, spelled out."""


def member_id_of(text: str | None) -> str:
    """Returns a valid member id. Raises INVALID_REQUEST if it is empty or too long."""
    if not text or len(text) > MAX_MEMBER_ID_LENGTH or not (text.isascii() or _is_short(text)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return text


def _is_short(text: str) -> bool:
    """True if the member id is short enough in UTF-16 code units, as Java counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) <= 2 * MAX_MEMBER_ID_LENGTH


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class PartitionId(NamedTuple):
    """A partition as ShareFetch names it."""

    topic_id: Uuid
    partition: int


class ShareSession:
    """One member's partitions, in the order in which its requests named them."""

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: SessionKey, partitions: dict[PartitionId, bool], connection: ClientConnection) -> None:
        self.key = key
        self.epoch = 1
        self.connection = connection
        self.partitions = partitions
        """The partitions, each with True if the next answer must include it even without records."""

    def advance(self) -> None:
        """Advances the epoch: from 1 to 2^31 - 1, then again from 1."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def update(self, named: Iterable[PartitionId], forgotten: Iterable[PartitionId]) -> None:
        """Adds and removes partitions."""
        for partition in named:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)


class ShareSessions:
    """The sessions of a broker, at most group.share.max.share.sessions of them."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: Counter[str] = Counter()
        self._groups: dict[ClientConnection, set[str]] = {}
        """The groups of the sessions that were opened on a connection, also of those that have ended."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def find(self, key: SessionKey) -> ShareSession:
        """Returns the session. Raises SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def go_on(self, key: SessionKey, epoch: int) -> ShareSession:
        """Advances the session by one epoch, and returns it. Raises SHARE_SESSION_NOT_FOUND,
        INVALID_SHARE_SESSION_EPOCH."""
        session = self.find(key)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.advance()
        return session

    def open(
        self, key: SessionKey, partitions: dict[PartitionId, bool], connection: ClientConnection, limit: int
    ) -> ShareSession:
        """Opens a session; replaces the member's old session. Raises SHARE_SESSION_LIMIT_REACHED."""
        self.remove(key)
        if len(self._sessions) >= limit:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = self._sessions[key] = ShareSession(key, partitions, connection)
        self._members[key.group_id] += 1
        self._groups.setdefault(connection, set()).add(key.group_id)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key.group_id] -= 1
            if not self._members[key.group_id]:
                del self._members[key.group_id]
        return session

    def of_connection(self, connection: ClientConnection) -> list[ShareSession]:
        """Returns the sessions that were opened on a connection."""
        return [session for session in self._sessions.values() if session.connection is connection]

    def forget(self, connection: ClientConnection) -> list[str]:
        """Forgets a closed connection. Returns the groups that had a session on it and have none now."""
        return [group_id for group_id in self._groups.pop(connection, ()) if group_id not in self._members]

    def of_group(self, group_id: str) -> list[ShareSession]:
        """Returns the sessions of a group's members."""
        return [session for session in self._sessions.values() if session.key.group_id == group_id]
