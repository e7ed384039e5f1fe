"""The follower's side of an incremental fetch session: a request carries the partitions that changed (KIP-227).

    session.put(key, partition) · session.drop(key)    changes of the next request, while none is in flight
    session.request()                                  → ids and partitions of a FetchRequest
    session.accept(response) · session.restart()       how the session continues

Source: Kafka's FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, error_code
from protocol.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic
from protocol.types import Uuid

NO_SESSION: Final = 0
"""The session id of a request for a new session, and of an answer without one."""

FIRST_EPOCH: Final = 0
"""The epoch of a full request, which ends an existing session of that id."""

MAX_EPOCH: Final = 0x7FFFFFFF


class PartitionKey(NamedTuple):
    """A partition as Fetch names it since version 13: a topic created again with the same name is another topic."""

    topic_id: Uuid
    partition: int


class SessionFetch(NamedTuple):
    """The part of a FetchRequest that depends on the session."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


def fetches_alike(one: FetchPartition, other: FetchPartition) -> bool:
    """True if both fetch a partition alike; fields that followers don't set are ignored."""
    return (
        one.fetch_offset == other.fetch_offset
        and one.log_start_offset == other.log_start_offset
        and one.current_leader_epoch == other.current_leader_epoch
        and one.last_fetched_epoch == other.last_fetched_epoch
        and one.partition_max_bytes == other.partition_max_bytes
    )


class FollowerSession:
    """A session with one leader."""

    def __init__(self) -> None:
        self.partitions: dict[PartitionKey, FetchPartition] = {}
        """The partitions of the next request, with the parameters that the leader has, or gets next."""
        self._changed: dict[PartitionKey, None] = {}
        self._dropped: dict[PartitionKey, None] = {}
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH

    @property
    def is_full(self) -> bool:
        """True if the next request names all partitions."""
        return self._epoch == FIRST_EPOCH

    @property
    def has_dropped(self) -> bool:
        """True if the leader's session has partitions that must no longer be fetched."""
        return bool(self._dropped) and not self.is_full

    def put(self, key: PartitionKey, partition: FetchPartition) -> None:
        """Adds a partition to the session, or changes its parameters; then it comes after all other partitions."""
        latest = self.partitions.get(key)
        if latest is not None and fetches_alike(latest, partition):
            return
        self.partitions.pop(key, None)
        self.partitions[key] = partition
        self._dropped.pop(key, None)
        self._changed[key] = None

    def drop(self, key: PartitionKey) -> None:
        """Stops fetching a partition."""
        if self.partitions.pop(key, None) is not None:
            self._changed.pop(key, None)
            self._dropped[key] = None

    def request(self) -> SessionFetch:
        """Returns the next request's part. All changes count as sent: unless its answer is accepted, a new session
        begins."""
        changed: Iterable[PartitionKey] = self.partitions if self.is_full else self._changed
        dropped: Iterable[PartitionKey] = () if self.is_full else self._dropped
        topics: dict[Uuid, FetchTopic] = {}
        for key in changed:
            topic = topics.get(key.topic_id)
            if topic is None:
                topic = topics[key.topic_id] = FetchTopic(topic_id=key.topic_id, partitions=[])
            topic.partitions.append(self.partitions[key])
        forgotten: dict[Uuid, ForgottenTopic] = {}
        for key in dropped:
            gone = forgotten.setdefault(key.topic_id, ForgottenTopic(topic_id=key.topic_id, partitions=[]))
            gone.partitions.append(key.partition)
        self._changed, self._dropped = {}, {}
        return SessionFetch(self._id, self._epoch, [*topics.values()], [*forgotten.values()])

    def accept(self, response: FetchResponse) -> str | None:
        """Advances the session by an answer. Returns the reason if the answer is invalid and must not be used."""
        code = error_code(response.error_code)
        if code is not ErrorCode.NONE:
            self.restart(forget=code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return code.name
        named = [
            PartitionKey(topic.topic_id, data.partition_index)
            for topic in response.responses
            for data in topic.partitions
        ]
        answered = frozenset(named)
        if len(answered) < len(named):
            self.restart()
            return "it has a partition twice"
        if not answered <= self.partitions.keys():
            self.restart()
            return "it has partitions that were not requested"
        if self.is_full and len(answered) < len(self.partitions):
            self.restart(forget=True)
            return None if response.throttle_time_ms > 0 and not answered else "it lacks partitions of a full request"
        self._go_on(response.session_id)
        return None

    def _go_on(self, session_id: int) -> None:
        if session_id == NO_SESSION:  # the leader can't hold a session, or has closed this one
            self.restart(forget=True)
        elif self.is_full:
            self._id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def restart(self, *, forget: bool = False) -> None:
        """Makes the next request a full one, which also ends the leader's session; with `forget`, the leader has
        none."""
        self._epoch = FIRST_EPOCH
        if forget:
            self._id = NO_SESSION
