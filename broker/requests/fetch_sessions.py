"""Incremental fetch sessions (KIP-227): a client names its partitions once, and gets only changes.

Source: kafka.server.FetchSession and FetchManager.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
NO_SESSION = 0
MAX_EPOCH = 0x7FFFFFFF
MIN_EVICTION_AGE_MS = 120_000
"""A session younger than this is never evicted, so that clients in turn cannot starve each other (Kafka's default)."""


MAX_PARTITIONS = 400_000
"""Partitions of all sessions together, a few hundred bytes each: Kafka bounds sessions alone, and one may name as many
as it likes, that are there or not. Four hundred consumers of a thousand partitions each have their sessions."""


class PartitionKey(NamedTuple):
    """A partition as a Fetch names it: by topic id since version 13, by name before."""

    topic: str
    topic_id: Uuid
    partition: int


class FetchedPartition:
    """A partition of a fetch, and the offsets that the client last got of it."""

    __slots__ = (
        "current_leader_epoch", "fetch_offset", "high_watermark", "index", "key", "last_fetched_epoch",
        "log_start_offset", "max_bytes", "told_start_offset", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, key: PartitionKey) -> None:
        self.key = key
        self.topic_id, self.index = key.topic_id, key.partition
        self.fetch_offset = 0
        self.log_start_offset = -1
        self.max_bytes = 0
        self.current_leader_epoch = -1
        self.last_fetched_epoch = -1
        self.high_watermark = -1
        self.told_start_offset = -1
        self.topic: str | None = None
        """The topic's name, resolved from the key's topic id."""

    def changed(self, high_watermark: int, log_start_offset: int) -> bool:
        """Notes the offsets of the next answer; True when they are news to the client."""
        news = high_watermark != self.high_watermark or log_start_offset != self.told_start_offset
        self.high_watermark = high_watermark
        self.told_start_offset = log_start_offset
        return news


class FetchSession:
    """One client's partitions, in the order in which they are served next."""

    __slots__ = ("created_ms", "epoch", "last_used_ms", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, now_ms: int, uses_topic_ids: bool) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.uses_topic_ids = uses_topic_ids
        self.partitions: OrderedDict[PartitionKey, FetchedPartition] = OrderedDict()

    def advance(self) -> None:
        """Advances the epoch, from 1 to 2^31 - 1 and then from 1 again."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def retreat(self) -> None:
        """Undo `advance`."""
        self.epoch = MAX_EPOCH if self.epoch == 1 else self.epoch - 1

    def named(self, topic_id: Uuid, partition: int) -> FetchedPartition | None:
        """Returns the partition that a request names by topic id; a plain tuple is as good a key, and made faster."""
        return self.partitions.get(("", topic_id, partition))  # type: ignore[call-overload, no-any-return]

    def served(self, key: PartitionKey) -> None:
        """Moves a partition that gave records to the end, so that the others get their turn."""
        self.partitions.move_to_end(key)


class FetchSessions:
    """The sessions of a broker, at most max.incremental.fetch.session.cache.slots of them."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self.slots = slots
        self.new_id = new_id
        self.sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def find(self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: int) -> FetchSession:
        """Returns the session that an incremental fetch continues. Raises the KafkaError that makes the client start
        anew."""
        session = self.sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.last_used_ms = now_ms
        self.sessions.move_to_end(session_id)
        session.advance()
        return session

    def create(self, partition_count: int, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """Returns a new session, or None when there is no slot: then the client gets full fetches."""
        if not self._make_room(partition_count, now_ms):
            return None
        session_id = self.new_id()
        while session_id == NO_SESSION or session_id in self.sessions:
            session_id = self.new_id()
        session = self.sessions[session_id] = FetchSession(session_id, now_ms, uses_topic_ids)
        return session

    def close(self, session_id: int) -> None:
        self.sessions.pop(session_id, None)

    def keep(self, session: FetchSession, before: int) -> None:
        """A session had so many partitions before and may have more now. Where all have too many, it is over: raises
        the KafkaError that makes the client start anew."""
        if len(session.partitions) > before and self._partition_count() > MAX_PARTITIONS:
            self.close(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def _partition_count(self) -> int:
        return sum([len(session.partitions) for session in self.sessions.values()])

    def _make_room(self, partition_count: int, now_ms: int) -> bool:
        """Sessions that were not used for long go first, else a smaller one of a certain age."""
        if partition_count > MAX_PARTITIONS:
            return False
        while self._partition_count() + partition_count > MAX_PARTITIONS:
            stalest = next(iter(self.sessions.values()))
            if now_ms - stalest.last_used_ms <= MIN_EVICTION_AGE_MS:
                return False
            del self.sessions[stalest.session_id]
        if len(self.sessions) < self.slots:
            return True
        oldest = next(iter(self.sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > MIN_EVICTION_AGE_MS:
            del self.sessions[oldest.session_id]
            return True
        smallest = min(self.sessions.values(), key=lambda session: len(session.partitions))
        if len(smallest.partitions) < partition_count and now_ms - smallest.created_ms > MIN_EVICTION_AGE_MS:
            del self.sessions[smallest.session_id]
            return True
        return False
