"""Incremental fetch sessions (KIP-227): a client names its partitions once, and gets only the changed ones.

Source: kafka.server.FetchSession and FetchManager.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from broker.fetch.partition import FetchedPartition
from broker.fetch.request import ParsedFetch, PartitionKey
from broker.replica.partition import Partition
from broker.replica.waiter import Waiter
from broker.request.pending import Parked
from coordinator.replication.isr import NO_BROKER_EPOCH
from protocol.errors import ErrorCode, KafkaError

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
MAX_EPOCH: Final = 0x7FFFFFFF
LONG_AGO_NS: Final = -(1 << 62)
MIN_EVICTION_AGE_MS: Final = 120_000
"""Sessions younger than this are not evicted, so that clients can't evict each other in turn (Kafka's default)."""


MAX_PARTITIONS: Final = 400_000
"""Maximum number of partitions in all sessions, a few hundred bytes each. Kafka limits only the number of sessions, and
a session may name any number of partitions, existing or not. Four hundred consumers with a thousand partitions each
fit."""

SWEEP_MS: Final = 200
"""The interval at which a follower's fetch reads its settled partitions too. It records that the follower keeps up, and
finds a log start offset that retention has moved, which wakes no request."""


class FetchSession:
    """One client's partitions, in the order in which its next fetch reads them."""

    __slots__ = (
        "broker_epoch", "created_ms", "epoch", "is_at_work", "is_closed", "is_privileged", "last_used_ms", "parked",
        "partitions", "served_ns", "session_id", "settled", "swept_ms", "unsettled", "uses_topic_ids",
    )  # fmt: skip

    def __init__(self, session_id: int, now_ms: int, uses_topic_ids: bool, is_privileged: bool) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """True for a follower's session: it may evict consumers' sessions, but not the other way round."""
        self.partitions: dict[PartitionKey, FetchedPartition] = {}
        self.unsettled: dict[PartitionKey, FetchedPartition] = {} if is_privileged else self.partitions
        """The partitions that the next fetch reads, in their order. Those of a follower that aren't here are settled:
        the follower has all records of each and knows its offsets, so its answer has nothing of them."""
        self.settled: dict[PartitionKey, SettledPartition] = {}
        self.swept_ms = now_ms
        """The time at which a fetch last read all partitions of a follower."""
        self.broker_epoch = NO_BROKER_EPOCH
        """A follower's broker epoch in its last fetch: all partitions report one that is stale."""
        self.parked: dict[Parked, None] = {}
        """A follower's fetches that wait: one, or more for a moment after it has connected again."""
        self.is_closed = False
        self.is_at_work = False
        """True while a fetch reads its partitions in turns: a second fetch would change the partitions that the first
        reads."""
        self.served_ns = LONG_AGO_NS
        """The time at which the session last got records, by the monotonic clock."""

    def advance(self) -> None:
        """Advances the epoch, from 1 to 2^31 - 1 and then from 1 again."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def begin(self, partitions: dict[PartitionKey, FetchedPartition]) -> None:
        """Sets the partitions of a new session."""
        self.partitions = partitions
        self.unsettled = dict(partitions) if self.is_privileged else partitions

    def update(self, named: Iterable[FetchedPartition], forgotten: Iterable[PartitionKey]) -> None:
        """Adds or updates the named partitions, and removes the forgotten ones."""
        partitions = self.partitions
        for partition in named:
            key = (partition.key, partition.index)
            cached = partitions.get(key)
            if cached is None:
                partitions[key] = self.unsettled[key] = partition
            else:
                cached.update_request(partition)
                if key in self.settled:
                    self.settled[key].end()
        for key in forgotten:
            if key in self.settled:
                self.settled[key].end()
            partitions.pop(key, None)
            self.unsettled.pop(key, None)

    def serve(self, served: list[FetchedPartition]) -> None:
        """Moves the partitions that returned records to the end, in their order, so that the others come first next
        time."""
        partitions = self.unsettled
        if len(served) == len(partitions):
            return
        for partition in served:
            key = (partition.key, partition.index)
            if key in partitions:
                del partitions[key]
                partitions[key] = partition

    def settle(self, fetched: FetchedPartition, partition: Partition) -> None:
        """Leaves a follower's partition out of its fetches, until something happens to it."""
        key = (fetched.key, fetched.index)
        if not self.is_closed and self.unsettled.get(key) is fetched:
            del self.unsettled[key]
            self.settled[key] = SettledPartition(self, key, partition)

    def unsettle(self) -> None:
        """Lets the next fetch read all partitions."""
        for settled in tuple(self.settled.values()):
            settled.end()

    def sweep(self, now_ms: int, broker_epoch: int) -> None:
        """Lets the next fetch read all partitions, if none has for SWEEP_MS, or if the follower's broker epoch has
        changed."""
        if not 0 <= now_ms - self.swept_ms < SWEEP_MS or broker_epoch != self.broker_epoch:
            self.swept_ms = now_ms
            self.broker_epoch = broker_epoch
            self.unsettle()


class SettledPartition(Waiter):
    """Waits for the next change of a partition of which a follower has everything."""

    __slots__ = ("_key", "_partition", "_session")

    def __init__(self, session: FetchSession, key: PartitionKey, partition: Partition) -> None:
        super().__init__(1)
        self._session = session
        self._key = key
        self._partition = partition
        partition.append_waiters[self] = None

    def end(self) -> None:
        """Lets the session's next fetch read the partition, and the partition wake a fetch that waits."""
        session, key = self._session, self._key
        self._partition.append_waiters.pop(self, None)
        del session.settled[key]
        session.unsettled[key] = session.partitions[key]
        for parked in tuple(session.parked):
            parked.watch_too(self._partition)

    def appended(self, size_bytes: int) -> None:
        self.end()
        for parked in tuple(self._session.parked):
            parked.appended(size_bytes)

    def wake(self) -> None:
        self.end()
        for parked in tuple(self._session.parked):
            parked.wake()


class FetchSessions:
    """The sessions of a broker, at most max.incremental.fetch.session.cache.slots of them."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self.slots = slots
        self.new_id = new_id
        self.sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def find(self, session_id: int, epoch: int, uses_topic_ids: bool) -> FetchSession:
        """Returns the session that an incremental fetch continues. Raises the KafkaError that makes the client begin a
        new session."""
        session = self.sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch or session.is_at_work:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def resume(self, request: ParsedFetch, now_ms: int) -> FetchSession | None:
        """Returns the session, updated and advanced by an epoch; None if the request leaves it without partitions,
        which ends it. Raises the errors of `find`, with nothing changed, and of `check_capacity`."""
        session = self.find(request.session_id, request.session_epoch, request.uses_topic_ids)
        session.advance()
        before = len(session.partitions)
        session.update(request.named, request.forgotten)
        self.check_capacity(session, before)
        if not session.partitions:
            self.close(session.session_id)
            return None
        session.last_used_ms = now_ms
        self.sessions.move_to_end(session.session_id)
        return session

    def create(
        self, partition_count: int, uses_topic_ids: bool, now_ms: int, *, is_privileged: bool = False
    ) -> FetchSession | None:
        """Returns a new session, or None if there is no place for it: its client then continues with full fetches."""
        if not self._make_room(partition_count, now_ms, is_privileged):
            return None
        session_id = self.new_id()
        while session_id == NO_SESSION or session_id in self.sessions:
            session_id = self.new_id()
        session = self.sessions[session_id] = FetchSession(session_id, now_ms, uses_topic_ids, is_privileged)
        return session

    def close(self, session_id: int) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            session.is_closed = True
            session.unsettle()

    def check_capacity(self, session: FetchSession, before: int) -> None:
        """Raises the KafkaError that makes the client begin a new session, and closes this session, if it has grown and
        all sessions together now have too many partitions."""
        if len(session.partitions) > before and self._partition_count() > MAX_PARTITIONS:
            self.close(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def _partition_count(self) -> int:
        return sum([len(session.partitions) for session in self.sessions.values()])

    def _make_room(self, partition_count: int, now_ms: int, is_privileged: bool) -> bool:
        """Evicts sessions until a new session has a place: stale sessions first, then the least important that is old
        enough. A follower's session is more important than any consumer's, and then more partitions are more important.
        A follower may evict a consumer's session of any age. Returns False if there is no place."""
        if partition_count > MAX_PARTITIONS:
            return False
        while self._partition_count() + partition_count > MAX_PARTITIONS:
            stalest = next(iter(self.sessions.values()))
            if now_ms - stalest.last_used_ms <= MIN_EVICTION_AGE_MS:
                return False
            self.close(stalest.session_id)
        if len(self.sessions) < self.slots:
            return True
        oldest = next(iter(self.sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > MIN_EVICTION_AGE_MS:
            self.close(oldest.session_id)
            return True
        evictable = [
            session
            for session in self.sessions.values()
            if now_ms - session.created_ms > MIN_EVICTION_AGE_MS or (is_privileged and not session.is_privileged)
        ]
        least = min(evictable, key=importance, default=None)
        if least is not None and importance(least) < (is_privileged, partition_count):
            self.close(least.session_id)
            return True
        return False


def importance(session: FetchSession) -> tuple[bool, int]:
    """Returns the sort key by which sessions are evicted (EvictableKey)."""
    return session.is_privileged, len(session.partitions)
