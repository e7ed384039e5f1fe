"""One Fetch, from its acceptance to its answer: at once, after a disk, or when enough was appended.

Source: kafka.server.KafkaApis.handleFetchRequest, DelayedFetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.clock import NS_PER_MS
from broker.exchange.context import Context
from broker.exchange.eager import Waiting, begin
from broker.exchange.pending import ParkedCall
from broker.fetch import writing
from broker.fetch.fetches import Fetches
from broker.fetch.gathered import Gathered
from broker.fetch.gathering import gather, quiet
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import ParsedFetch
from broker.fetch.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSession
from broker.replica.partition import Partition
from protocol.errors import ErrorCode
from protocol.types import Buffer
from storage.segment.cold import ColdRead

if TYPE_CHECKING:
    from protocol.messages.fetch import FetchResponse

FIRST_SESSION_VERSION: Final = 7
INDEXES: Final = 1 << 32
"""As many as partition numbers can be told apart."""

Outcome: TypeAlias = "list[Buffer] | FetchResponse | ParkedFetch"
"""An answer, written or still to be encoded, or what waits for one."""


class Fetch:
    """A request that was accepted, and what it reads."""

    __slots__ = ("context", "fetches", "is_new", "named", "request", "session")

    def __init__(
        self,
        fetches: Fetches,
        context: Context,
        request: ParsedFetch,
        named: list[FetchedPartition],
        session: FetchSession | None,
        is_new: bool,
    ) -> None:
        self.fetches = fetches
        self.context = context
        self.request = request
        self.named = named
        self.session = session
        self.is_new = is_new
        """True where the request names all that it reads, and is told of all; else the session knows what is read, and
        its client hears of partitions with news."""

    @property
    def partitions(self) -> list[FetchedPartition]:
        """What is read, in the order in which it is served."""
        session = self.session
        return self.named if session is None or self.is_new else list(session.partitions.values())

    def gather(self, is_warm: bool = False) -> Gathered:
        """What its partitions give now."""
        return gather(self.fetches.replicas, self.request, self.partitions, is_warm)

    def is_enough(self, gathered: Gathered) -> bool:
        """True where there is something to answer now, or nothing to wait for."""
        return gathered.size_bytes >= self.request.min_bytes or gathered.is_urgent or not gathered.may_grow

    def answer(self, gathered: Gathered) -> list[Buffer] | FetchResponse:
        """The answer of what was gathered; its client has been told of that from here on."""
        answers = ordered(gathered.partitions) if gathered.has_missing else gathered.partitions
        if self.session is None:
            return self.written(gathered, NO_SESSION, answers)
        answer = self.written(gathered, self.session.session_id, news(self.session, answers, self.is_new))
        gathered.release()
        return answer

    def written(
        self, gathered: Gathered, session_id: int, answers: list[FetchedPartition]
    ) -> list[Buffer] | FetchResponse:
        """The answer that tells of these partitions."""
        if gathered.is_plain and self.context.version >= writing.FIRST_VERSION:
            return writing.written(self.context.correlation_id, session_id, answers)
        from broker.fetch.response import response  # messages take time to import, which few consumers need

        return response(self.fetches.image, self.context.listener, self.request, session_id, answers)


def accept(fetches: Fetches, context: Context, request: ParsedFetch) -> Fetch:
    """The fetch of a request. Its session is changed as the request has it, unless it raises the KafkaError that makes
    the client begin a session anew: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
    FETCH_SESSION_TOPIC_ID_ERROR."""
    named, epoch = request.named, request.session_epoch
    session: FetchSession | None = None
    if epoch != INITIAL_EPOCH and epoch != FINAL_EPOCH:
        session = fetches.sessions.go_on(request, fetches.clock.now_ms())
        if session is not None:
            return Fetch(fetches, context, request, named, session, False)
    if is_repetitive(named):
        named = distinct(named)
    if epoch <= INITIAL_EPOCH and request.session_id != NO_SESSION:
        fetches.sessions.close(request.session_id)
    if epoch == INITIAL_EPOCH and request.version >= FIRST_SESSION_VERSION:
        session = fetches.sessions.open(request, named, fetches.clock.now_ms())
    return Fetch(fetches, context, request, named, session, True)


def is_repetitive(named: list[FetchedPartition]) -> bool:
    """True where a partition may be named twice: as a topic is, or a number within one."""
    if is_ascending(named):
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
            topic += INDEXES
        numbers.add(topic + partition.index)
    return len(numbers) < len(named)


def is_ascending(named: list[FetchedPartition]) -> bool:
    """True of one topic's partitions in the order of their numbers, as most name them."""
    if not named:
        return True
    key, last = named[0].key, -1
    for partition in named:
        index = partition.index
        if partition.key is not key or index <= last:
            return False
        last = index
    return True


def distinct(named: list[FetchedPartition]) -> list[FetchedPartition]:
    """A partition that is named twice is read where it was named last."""
    return list({(partition.key, partition.index): partition for partition in named}.values())


def serve(fetch: Fetch) -> Outcome | Waiting[Outcome]:
    """The answer, now or later."""
    request = fetch.request
    if request.may_wait:
        partitions = quiet(fetch.fetches.replicas, request, fetch.partitions)
        if partitions:
            return ParkedFetch(fetch, partitions, request.min_bytes, request.max_wait_ms)
    gathered, max_wait_ms = fetch.gather(), request.max_wait_ms
    if gathered.cold is not None:
        return begin(serve_cold(fetch, gathered.cold, max_wait_ms))
    if max_wait_ms <= 0 or fetch.is_enough(gathered):
        return fetch.answer(gathered)
    return parked(fetch, gathered, max_wait_ms)


async def serve_cold(fetch: Fetch, cold: Sequence[ColdRead], max_wait_ms: int) -> Outcome:
    """What is not in memory is read by a thread first: the event loop must not wait for a disk."""
    clock = fetch.fetches.clock
    deadline_ms = clock.monotonic_ms() + max_wait_ms
    await fetch.fetches.disk_work.read_ahead(cold)
    gathered = fetch.gather(True)
    left_ms = deadline_ms - clock.monotonic_ms()
    if left_ms <= 0 or fetch.is_enough(gathered):
        return fetch.answer(gathered)
    return parked(fetch, gathered, left_ms)


def parked(fetch: Fetch, gathered: Gathered, max_wait_ms: int) -> ParkedFetch:
    """The wait for what is missing."""
    watched = gathered.watched
    gathered.release()
    return ParkedFetch(fetch, watched, fetch.request.min_bytes - gathered.size_bytes, max_wait_ms)


class ParkedFetch(ParkedCall):
    """One that waits for bytes, and reads its partitions anew whenever it looks."""

    __slots__ = ("_fetch",)

    def __init__(self, fetch: Fetch, partitions: list[Partition], missing_bytes: int, max_wait_ms: int) -> None:
        super().__init__(fetch.context, missing_bytes, committed_only=fetch.request.committed_only)
        self._fetch = fetch
        self.watch(partitions)
        fetch.fetches.timeouts.add(self, max_wait_ms)

    def watch(self, partitions: list[Partition]) -> None:
        if self._fetch.request.replica is None:
            super().watch(partitions)
            return
        for partition in self._watched:
            partition.append_waiters.pop(self, None)
        self._watched = partitions
        for partition in partitions:
            partition.append_waiters[self] = None

    def try_respond(self, *, is_last: bool) -> object | None:
        fetch = self._fetch
        gathered = fetch.gather()
        if gathered.cold is not None:
            left_ns = 0 if is_last else max(self.deadline_ns - fetch.fetches.clock.monotonic_ns(), 0)
            return begin(serve_cold(fetch, gathered.cold, left_ns // NS_PER_MS))
        if is_last or fetch.is_enough(gathered):
            return fetch.answer(gathered)
        self.missing_bytes = fetch.request.min_bytes - gathered.size_bytes
        self.watch(gathered.watched)
        gathered.release()
        return None


def ordered(answers: list[FetchedPartition]) -> list[FetchedPartition]:
    """Partitions that are not here come last, those of unknown topic ids before the others."""
    return sorted(answers, key=rank)


def rank(answer: FetchedPartition) -> int:
    if not answer.is_missing:
        return 0
    return 1 if answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID else 2


def news(session: FetchSession, answers: list[FetchedPartition], is_new: bool) -> list[FetchedPartition]:
    """The answers that the session's client does not know yet; all, if it is new. It is told of them now."""
    result: list[FetchedPartition] = []
    served: list[FetchedPartition] = []
    for answer in answers:
        is_changed = answer.changed()
        if len(answer.records):
            served.append(answer)
        elif not (is_new or is_changed or answer.is_special):
            continue
        result.append(answer)
    if not is_new:
        session.serve(served)
    return result
