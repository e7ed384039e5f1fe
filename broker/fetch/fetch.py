"""Serves one Fetch: at once, after reads from a disk, or parked until its partitions have enough records.

Source: kafka.server.KafkaApis.handleFetchRequest, DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.clock import NS_PER_MS
from broker.fetch import wire, writing
from broker.fetch.access import deny_unreadable
from broker.fetch.fetches import Fetches
from broker.fetch.partition import FetchedPartition
from broker.fetch.reading import HELD_BYTES, PartitionReads, caught_up, is_settled, read_partitions
from broker.fetch.request import ParsedFetch
from broker.fetch.response import response
from broker.fetch.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession
from broker.replica.partition import Partition
from broker.request.context import Context
from broker.request.eager import Waiting, begin
from broker.request.pending import ParkedCall
from broker.request.request_times import FETCH_FOLLOWER
from protocol.errors import ErrorCode
from protocol.types import Buffer
from storage.cold import ColdRead

if TYPE_CHECKING:
    from protocol.messages.fetch import FetchResponse

FIRST_SESSION_VERSION: Final = 7
TOPIC_STRIDE: Final = 1 << 32
"""The distance of two topics, to make one integer of a topic's position and a partition's index."""

MANY_PARTITIONS: Final = 2_000
"""Maximum number of partitions of a fetch that is served without a turn for other connections, which takes twenty
milliseconds."""

Outcome: TypeAlias = "list[Buffer] | FetchResponse | ParkedFetch"
"""An answer, encoded or as a message, or the parked request that will have an answer."""


class Fetch:
    """An accepted request, with its session."""

    __slots__ = ("context", "fetches", "is_full", "named", "request", "session")

    def __init__(
        self,
        fetches: Fetches,
        context: Context,
        request: ParsedFetch,
        named: list[FetchedPartition],
        session: FetchSession | None,
        is_full: bool,
    ) -> None:
        self.fetches = fetches
        self.context = context
        self.request = request
        self.named = named
        self.session = session
        self.is_full = is_full
        """True for a full fetch, which reads the partitions that its request names, and answers each. An incremental
        fetch reads its session's partitions, and answers the changed ones (KIP-227)."""
        if fetches.quotas is not None and request.replica is None:
            largest = fetches.quotas.largest_fetch(context)
            if largest is not None:
                request.max_bytes = min(request.max_bytes, int(largest))
        if fetches.authorizer is not None and not self.is_many:
            partitions = named if session is None or is_full else session.partitions.values()
            deny_unreadable(request, context, fetches.authorizer, fetches.replicas, partitions)
            if request.denied and session is not None:
                session.unsettle()

    @property
    def partitions(self) -> list[FetchedPartition]:
        """The partitions to read, in the order in which they are served."""
        session = self.session
        if session is None or self.is_full:
            return self.named
        return list((session.partitions if self.request.replica is None else session.unsettled).values())

    @property
    def is_many(self) -> bool:
        """True if the fetch is served in turns. An incremental fetch of a follower is not, unless a topic is denied."""
        session = self.session
        count = len(self.named) if session is None or self.is_full else len(session.partitions)
        if count <= MANY_PARTITIONS:
            return False
        request = self.request
        return self.is_full or request.replica is None or len(request.denied) > 0

    def read_all(self, is_warm: bool = False) -> PartitionReads:
        """Reads the partitions' current state."""
        result = read_partitions(self.fetches.replicas, self.request, self.partitions, is_warm)
        if self.session is not None and self.session.settled:
            result.may_grow = True
        return result

    def has_no_news(self, watched: list[Partition]) -> bool:
        """True for a follower that has all records of its partitions, and knows their current offsets: its answer has
        no partitions, as do most answers of an idle broker with thousands of partitions. Those that aren't settled are
        `watched`."""
        session = self.session
        if session is None or self.is_full or self.request.replica is None or len(watched) != len(session.unsettled):
            return False
        for fetched, partition in zip(session.unsettled.values(), watched, strict=True):
            if not fetched.has_all_of(partition):
                return False
        return True

    def is_enough(self, result: PartitionReads) -> bool:
        """True if the fetch must be answered now: it has enough bytes, an answer that must not wait, or nothing to wait
        for."""
        return result.size_bytes >= self.request.min_bytes or result.is_urgent or not result.may_grow

    def hold_ms(self, result: PartitionReads) -> int:
        """Returns the time in milliseconds for which a complete answer is held back to batch more records."""
        if self.session is None or self.request.replica is None or result.is_urgent:
            return 0
        return result.hold_ms(self.session.served_ns, self.fetches.clock.monotonic_ns())

    def answer(self, result: PartitionReads) -> list[Buffer] | FetchResponse:
        """Returns the answer with the records read. The session counts it as reported from here on."""
        session_id, answers = self.report(result)
        answer = self.encode(result, session_id, answers)
        if self.session is not None:
            self.settle(result)
            result.release()
        return answer

    def settle(self, result: PartitionReads) -> None:
        """Leaves a follower's partitions without news out of the next fetches of its session, and of `result`."""
        session, replica = self.session, self.request.replica
        if session is None or replica is None or self.is_full or not session.is_privileged:
            return
        for fetched in result.partitions:
            partition = fetched.replica
            if partition is not None and not len(fetched.records) and is_settled(replica, partition, fetched):
                session.settle(fetched, partition)
                fetched.replica = None

    def report(self, result: PartitionReads) -> tuple[int, list[FetchedPartition]]:
        """Returns the session's id and the partitions to answer. The session counts them as reported from here on."""
        answers = self.to_report(result)
        if answers is None:
            return self.without_records(result), []
        if self.session is not None:
            answers = changes(self.session, answers, self.is_full)
        return self.session_id, answers

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.session_id

    def to_report(self, result: PartitionReads) -> list[FetchedPartition] | None:
        """Returns the partitions that were read, in the order of the answer; None if the client is throttled. Counts
        their bytes."""
        quotas = self.fetches.quotas
        if quotas is not None and self.request.replica is None and quotas.fetched(self.context, result.size_bytes):
            return None
        if result.size_bytes:
            self._count_bytes(result)
            if self.session is not None and self.request.replica is not None:
                self.session.served_ns = self.fetches.clock.monotonic_ns()
        answers = missing_last(result.partitions) if result.has_missing else result.partitions
        if self.request.replica is not None:
            self.request.replica.note_throttled(answers)
        return answers

    def without_records(self, result: PartitionReads) -> int:
        """Returns the session's id for the answer to a throttled client. Its session continues, with nothing counted as
        reported; a session that this request would open is not opened."""
        result.release()
        session = self.session
        if session is None:
            return NO_SESSION
        if self.is_full:
            self.fetches.sessions.close(session.session_id)
            return NO_SESSION
        return session.session_id

    def _count_bytes(self, result: PartitionReads) -> None:
        is_replication = self.request.replica is not None
        for fetched in result.partitions:
            if fetched.replica is not None:
                traffic = fetched.replica.traffic
                if is_replication:
                    traffic.replication_bytes_out += len(fetched.records)
                else:
                    traffic.bytes_out += len(fetched.records)

    def encode(
        self, result: PartitionReads, session_id: int, answers: list[FetchedPartition]
    ) -> list[Buffer] | FetchResponse:
        """Encodes the answer of these partitions by hand, or returns it as a message for the codec."""
        if result.is_plain and self.context.version >= wire.FIRST_VERSION:
            return writing.encoded(self.context.correlation_id, self.context.throttle_ms, session_id, answers)
        return response(self.fetches.image, self.context.listener, self.request, session_id, answers)


def accept(fetches: Fetches, context: Context, request: ParsedFetch) -> Fetch:
    """Returns the fetch of a request, and updates its session. Raises, with the session unchanged, the KafkaError that
    makes the client begin a new session: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR."""
    named = request.named
    if request.replica is not None:
        context.counted_as = FETCH_FOLLOWER
    session: FetchSession | None = None
    if is_incremental(request):
        session = fetches.sessions.resume(request, fetches.clock.now_ms())
        if session is not None:
            if request.replica is not None:
                session.sweep(request.replica.received_ms, request.replica.broker_epoch)
            return Fetch(fetches, context, request, named, session, False)
    if may_have_duplicates(named):
        named = distinct(named)
    session = new_session(fetches, request, len(named))
    if session is not None:
        session.update(named, ())
    return Fetch(fetches, context, request, named, session, True)


def is_incremental(request: ParsedFetch) -> bool:
    """True if the request continues a session."""
    return request.session_epoch != INITIAL_EPOCH and request.session_epoch != FINAL_EPOCH


def new_session(fetches: Fetches, request: ParsedFetch, partition_count: int) -> FetchSession | None:
    """Closes the session that a full fetch replaces, and returns a new one without partitions; None if the client wants
    none, or if there is no place for it."""
    epoch = request.session_epoch
    if epoch <= INITIAL_EPOCH and request.session_id != NO_SESSION:
        fetches.sessions.close(request.session_id)
    if epoch != INITIAL_EPOCH or request.version < FIRST_SESSION_VERSION:
        return None
    return fetches.sessions.create(
        partition_count, request.uses_topic_ids, fetches.clock.now_ms(), is_privileged=request.replica is not None
    )


def may_have_duplicates(named: list[FetchedPartition]) -> bool:
    """True if the request may name a partition twice: it names a topic twice, or an index twice within a topic."""
    if len(named) < 2 or is_ascending(named):
        return False
    key = named[0].key
    keys: set[bytes] = {key}
    numbers: set[int] = set()
    topic = 0
    for partition in named:
        if partition.key is not key:
            key = partition.key
            if key in keys:
                return True
            keys.add(key)
            topic += TOPIC_STRIDE
        numbers.add(topic + partition.index)
    return len(numbers) < len(named)


def is_ascending(named: list[FetchedPartition]) -> bool:
    """True for partitions of one topic in the order of their indexes, as most requests name them."""
    key, last = named[0].key, -1
    for partition in named:
        index = partition.index
        if partition.key is not key or index <= last:
            return False
        last = index
    return True


def distinct(named: list[FetchedPartition]) -> list[FetchedPartition]:
    """Returns each partition once: at the position of its first mention, with the parameters of its last."""
    return list({(partition.key, partition.index): partition for partition in named}.values())


def serve(fetch: Fetch) -> Outcome | Waiting[Outcome]:
    """Returns the answer, the parked request, or a coroutine that continues once a disk was read."""
    request = fetch.request
    max_wait_ms = request.max_wait_ms
    if request.may_wait and request.replica is None:
        ended = caught_up(fetch.fetches.replicas, request, fetch.partitions)
        if ended:
            return ParkedFetch(fetch, ended, request.min_bytes, max_wait_ms)
    result = fetch.read_all()
    if result.cold is not None:
        return begin(serve_cold(fetch, result.cold, max_wait_ms))
    if max_wait_ms <= 0:
        return fetch.answer(result)
    if fetch.is_enough(result):
        held_ms = fetch.hold_ms(result)
        return held(fetch, result, min(held_ms, max_wait_ms)) if held_ms else fetch.answer(result)
    return parked(fetch, result, max_wait_ms)


async def serve_cold(fetch: Fetch, cold: Sequence[ColdRead], max_wait_ms: int) -> Outcome:
    """Serves the fetch after a thread has read ahead what isn't in memory: the event loop must not wait for a disk."""
    clock = fetch.fetches.clock
    deadline_ms = clock.monotonic_ms() + max_wait_ms
    await fetch.fetches.disk_work.read_ahead(cold)
    result = fetch.read_all(True)
    left_ms = deadline_ms - clock.monotonic_ms()
    if left_ms <= 0 or fetch.is_enough(result):
        return fetch.answer(result)
    return parked(fetch, result, left_ms)


def parked(fetch: Fetch, result: PartitionReads, max_wait_ms: int) -> ParkedFetch:
    """Parks the fetch until the missing bytes are appended."""
    fetch.settle(result)
    watched = result.watched
    result.release()
    return ParkedFetch(fetch, watched, fetch.request.min_bytes - result.size_bytes, max_wait_ms)


def held(fetch: Fetch, result: PartitionReads, held_ms: int) -> ParkedFetch:
    """Parks a follower's fetch that has records already, until there are more or something waits for them."""
    request = ParkedFetch(fetch, [], 0, held_ms)
    request.hold(result)
    return request


class ParkedFetch(ParkedCall):
    """A fetch that waits for bytes; each attempt to complete it reads its partitions again."""

    __slots__ = ("_fetch", "_is_held")

    def __init__(self, fetch: Fetch, partitions: list[Partition], missing_bytes: int, max_wait_ms: int) -> None:
        super().__init__(fetch.context, missing_bytes, committed_only=fetch.request.committed_only)
        self._fetch = fetch
        self._is_held = False
        """True if it could be answered, but waits to batch more."""
        if fetch.session is not None and fetch.request.replica is not None:
            fetch.session.parked[self] = None
        self.watch(partitions)
        fetch.fetches.timeouts.add(self, max_wait_ms)

    def watch(self, partitions: list[Partition]) -> None:
        if self._fetch.request.replica is not None:
            for partition in self._watched:
                partition.append_waiters.pop(self, None)
                partition.held.pop(self, None)
        super().watch(partitions)

    def watch_too(self, partition: Partition) -> None:
        if self._fetch.request.replica is None:
            super().watch_too(partition)
            return
        self._watched.append(partition)
        partition.append_waiters[self] = None
        if self._is_held:
            partition.held[self] = None

    def cancel(self) -> None:
        super().cancel()
        if self._fetch.session is not None:
            self._fetch.session.parked.pop(self, None)

    def hold(self, result: PartitionReads) -> None:
        """Keeps waiting, until the bytes are worth a round trip, or something waits for these records."""
        self._is_held = True
        self.missing_bytes = HELD_BYTES - result.size_bytes
        self.watch(result.watched)
        result.release()

    def try_respond(self, *, is_last: bool) -> object | None:
        fetch = self._fetch
        if is_last and fetch.has_no_news(self._watched):
            return fetch.answer(PartitionReads([], fetch.request.max_bytes))
        result = fetch.read_all()
        if result.cold is not None:
            left_ns = 0 if is_last else max(self.deadline_ns - fetch.fetches.clock.monotonic_ns(), 0)
            return begin(serve_cold(fetch, result.cold, left_ns // NS_PER_MS))
        if is_last:
            return fetch.answer(result)
        if fetch.is_enough(result):
            held_ms = fetch.hold_ms(result)
            if not held_ms:
                return fetch.answer(result)
            if not self._is_held:
                fetch.fetches.timeouts.add(self, held_ms)
            self.hold(result)
            return None
        self._is_held = False
        self.missing_bytes = fetch.request.min_bytes - result.size_bytes
        fetch.settle(result)
        self.watch(result.watched)
        result.release()
        return None


def missing_last(answers: list[FetchedPartition]) -> list[FetchedPartition]:
    """Returns the answers with the missing partitions last, unknown topic ids before the others."""
    return sorted(answers, key=rank)


def rank(answer: FetchedPartition) -> int:
    if not answer.is_missing:
        return 0
    return 1 if answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID else 2


def changes(session: FetchSession, answers: list[FetchedPartition], is_full: bool) -> list[FetchedPartition]:
    """Returns the answers with records, an error, or offsets that differ from those last reported; all answers for a
    full fetch."""
    changed: list[FetchedPartition] = []
    served: list[FetchedPartition] = []
    for answer in answers:
        is_changed = answer.update_reported()
        if len(answer.records):
            served.append(answer)
        elif not (is_full or is_changed or answer.is_special):
            continue
        changed.append(answer)
    if not is_full:
        session.serve(served)
    return changed
