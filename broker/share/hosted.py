"""Hosted: a share partition on this broker, with its log, its dead letters and the fetches that wait.

The machine decides, and the engine writes its records through this module. Everything runs in the event loop, and a
fetch reads and acquires in one turn, so no fetch lock is needed.

Source: SharePartition's I/O (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from broker.clock import Clock, next_turn
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.request.turns import Turns
from broker.shards.translations import seen_by_share_member
from broker.share.dead_letters import DeadLetters, letters_of
from broker.share.persister import Persister
from broker.share.queue import FetchQueue
from broker.share.record_scanner import RecordScanner
from broker.share.state_operations import ReadState, WriteState, stored_batches
from broker.workers import Workers
from client.futures import retrieve
from coordinator.engine.engine import Engine
from coordinator.engine.result import Decision
from coordinator.group.config import BY_DURATION, GroupConfig, duration_ms
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareState
from coordinator.share.shard import StateWrite
from coordinator.share_partition.acknowledge import Acknowledgement, ReservedPart, acknowledge, withdraw, write
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.expiry import archive_aborted, buried, release
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Limits, StateRecord
from coordinator.share_partition.share_partition import PIECE, SharePartition
from coordinator.share_partition.states import ARCHIVING
from protocol.errors import ErrorCode, KafkaError
from protocol.tuples import new_tuple
from storage.segment.offsets_for_time import searched

FENCING_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which the share partition is unloaded; the next request loads it again."""

WriteCallback = Callable[[KafkaError | None], None]
"""Called with None once a write is durable, or with its error."""

A = TypeVar("A")

logger = get_logger(__name__)


class Hosted:
    """A share partition on this broker, in one leader epoch; `coordinator.engine.machine.Storage` and `Serde` of its
    machine, whose records the persister writes."""

    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        config: Callable[[], GroupConfig],
        engine: Engine[StateRecord],
        persister: Persister,
        dead_letters: DeadLetters,
        clock: Clock,
        workers: Workers,
        given_up: Callable[[Hosted], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.queue = FetchQueue(lambda: self.machine.is_active and self.machine.can_acquire)
        """The fetches that wait for records, or until more may be in flight."""
        self.machine = SharePartition(Limits(), self.queue.wake_all)  # and not self.wake, which would be a cycle
        self._scanner: RecordScanner | None = None
        self._current_config = config
        self.config = config()
        """The group's options, which `refresh` keeps current."""
        self._engine = engine
        self._persister = persister
        self._leader_epoch = partition.leader_epoch
        self._state_epoch = 0
        self._record: StateRecord = ()
        """The record to write next."""
        self.end_offset = 0
        """The number of records."""
        self._dead_letters = dead_letters
        self._burying: asyncio.Task[None] | None = None
        self._clock = clock
        self._workers = workers
        self._given_up = given_up
        self._is_stopped = False
        self.error: KafkaError | None = None
        """The error that loading failed with; None otherwise."""
        self._apply(self.config)

    # Life.

    async def load(self) -> None:
        """Loads the stored state. Afterwards the share partition is active or has an error."""
        if self._is_stopped:  # the topic was deleted, or another broker became leader, before loading began
            return
        try:
            await self._engine.load(self.key, self.machine, self, self, self._activate, self._written)
        except Exception as error:
            self._not_loaded(error)
        self.wake()

    def _activate(self, now_ms: int) -> None:
        self.machine.activate()
        self.bury()

    def _not_loaded(self, error: Exception) -> None:
        if isinstance(error, KafkaError):
            self.error = seen_by_share_member(error)
            logger.warning("share partition not loaded", partition=str(self.key), reason=str(error))
        else:
            self.error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            logger.error("share partition not loaded", partition=str(self.key), exc_info=error)
        self._given_up(self)

    def _initial_offset(self) -> int:
        """Returns the start offset of a group without one (share.auto.offset.reset)."""
        reset, partition = self.config.share_auto_offset_reset, self.partition
        if reset == "earliest":
            return partition.log_start_offset
        if reset.startswith(BY_DURATION):
            since_ms = self._clock.now_ms() - (duration_ms(reset.removeprefix(BY_DURATION)) or 0)
            record = searched(partial(partition.offset_for_timestamp, since_ms))
            if record is not None and record.offset < partition.high_watermark:
                return record.offset
        return partition.high_watermark

    def stop(self) -> None:
        """Fences the share partition: waiting fetches try again, and load it again. Has no effect on a share partition
        that is already fenced, because the engine may already run its successor."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self.machine.is_active = False
        self._engine.unload(self.key)
        if self._burying is not None:
            self._burying.cancel()
        if self._scanner is not None:
            self._scanner.stop()
        self.queue.end()

    def features_changed(self) -> None:
        """Applies the group's options again, because some depend on the cluster's features."""
        self._apply(self._current_config())

    def refresh(self) -> None:
        """Applies the group's options if they have changed."""
        config = self._current_config()
        if config is not self.config:
            self._apply(config)

    def _apply(self, config: GroupConfig) -> None:
        self.config = config
        self.machine.limits = self._limits_of(config)
        self._hold_back(config)

    def _limits_of(self, config: GroupConfig) -> Limits:
        return Limits(
            config.share_delivery_count_limit,
            config.share_partition_max_record_locks,
            config.share_record_lock_duration_ms,
            config.share_renew_acknowledge_enable,
            self._dead_letters.are_enabled(config),
            config.odradek_share_redelivery_backoff_ms,
            config.odradek_share_redelivery_backoff_max_ms,
        )

    def _hold_back(self, config: GroupConfig) -> None:
        if self._scanner is None:
            if not (config.odradek_share_order_by_key or config.odradek_share_delivery_delay_header):
                return
            name = f"{self.key.group_id}:{self.partition.name}"
            self._scanner = RecordScanner(name, self.machine, self.queue.wake_all, self._clock, self._workers)
        self._scanner.configure(config)
        self.wake()

    @property
    def scanner(self) -> RecordScanner | None:
        """The scanner of records; None unless the group holds records back by their delivery time or key."""
        return None if self.machine.holdback is None else self._scanner

    @property
    def lag(self) -> int:
        """The number of committed records whose delivery is not complete (KIP-1226)."""
        machine = self.machine
        return max(self.partition.high_watermark - machine.start_offset - machine.delivery_complete_count, 0)

    def wake(self) -> None:
        """Wakes all fetches that wait for records."""
        self.queue.wake_all()

    def _offer(self) -> None:
        """Wakes one waiting fetch after the other while more records can be acquired. If records are held back, wakes
        all at once, because each fetch may be able to acquire different records."""
        if self.machine.holdback is None:
            self.queue.offer()
        else:
            self.wake()

    # Members.

    def acquire(
        self,
        acquire_request: AcquireRequest,
        fetch_offset: int,
        fetched: list[FetchedBatch],
        aborted: Iterable[tuple[int, int]],
    ) -> list[Acquired]:
        """Acquires records of the batches for a member, and returns them; batches of aborted transactions are archived
        instead."""
        machine = self.machine
        acquired = acquire(machine, acquire_request, fetch_offset, fetched, self._clock.now_ms())
        if aborted and acquired:
            archive_aborted(machine, aborted)
            acquired = without(acquired, aborted)
            machine.advance()
        self._engine.arm(self.key)
        return acquired

    def submit(self, decision: Decision[A, StateRecord]) -> asyncio.Future[A]:
        """Decides and writes. Returns the answer's future, with an error as members see it. Raises KafkaError of the
        decision; UNKNOWN_TOPIC_OR_PARTITION if the share partition isn't active."""
        if not self.machine.is_active:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._engine.submit(self.key, decision)

    async def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], turns: Turns
    ) -> Awaitable[object]:
        """Applies acknowledgements, many of them in several turns. Returns an awaitable that ends once they are
        durable. Raises KafkaError."""
        future = self.submit(partial(acknowledge, self.machine, member_id, acknowledgements, True))
        part = future.result() if future.done() else None
        return future if part is None else await self._in_parts(member_id, part, turns)

    async def _in_parts(self, member_id: str, part: ReservedPart, turns: Turns) -> Awaitable[object]:
        """Decides on the rest of a long acknowledgement, and then writes its parts."""
        unwritten, remaining = deque((part.record,)), part.remaining
        futures: list[asyncio.Future[None]] = []
        try:
            while remaining:
                await turns.next()
                part = await self.submit(partial(acknowledge, self.machine, member_id, remaining, False))
                assert part is not None
                unwritten.append(part.record)
                remaining = part.remaining
            while unwritten:
                await turns.next()
                future = self.submit(partial(write, unwritten[0]))
                future.add_done_callback(retrieve)  # the request may be gone
                futures.append(future)
                unwritten.popleft()
        except BaseException:
            if self.machine.is_active:
                self.submit(partial(withdraw, self.machine, tuple(unwritten)))
            raise
        written = asyncio.gather(*futures)
        written.add_done_callback(retrieve)
        return written

    def release(self, member_id: str) -> None:
        """Releases the records of a member that is gone: many of them in several turns."""
        if self.machine.is_active and member_id in self.machine.cache.index.by_member:
            self.submit(partial(release, self.machine, member_id)).add_done_callback(
                lambda released: self._released(member_id, released)
            )

    def _released(self, member_id: str, released: asyncio.Future[bool]) -> None:
        if released.exception() is not None:
            logger.warning("state not written", partition=str(self.key), reason=str(released.exception()))
        elif released.result():
            self.release(member_id)

    # Dead letters.

    def bury(self) -> None:
        """Starts a task that writes undeliverable records to the dead-letter queue and then archives them."""
        if self._burying is None and self.machine.to_bury():
            self._burying = asyncio.ensure_future(self._bury())

    async def _bury(self) -> None:
        try:
            while self.machine.is_active and (runs := self.machine.to_bury()):
                ranges = [(run.first, run.last) for run in runs]
                letters = letters_of(runs, self.machine.rejected, self.machine.limits.max_delivery_count)
                await self._dead_letters.write(self.key, self.partition, letters, self.config)
                for start in range(0, len(ranges), PIECE):
                    if self.machine.is_active:
                        self.submit(partial(buried, self.machine, ranges[start : start + PIECE]))
                    await next_turn()
        except Exception:
            logger.exception("records not moved to the dead-letter queue", partition=str(self.key))
            self._given_up(self)
        finally:
            self._burying = None

    # The storage.

    def read(self) -> AsyncIterator[StateRecord]:
        """Yields the stored state, once the start offset is set. Raises KafkaError."""
        return stored_batches(partial(self._persister.submit, ReadState(self.key, self._leader_epoch)), self._begin)

    def _begin(self, state: ShareState) -> None:
        self._state_epoch = state.state_epoch
        self.machine.begin_at(self._initial_offset() if state.start_offset == NO_START_OFFSET else state.start_offset)

    def decode(self, record: StateRecord) -> tuple[StateRecord]:
        return (record,)

    def encode(self, records: Sequence[StateRecord], now_ms: int) -> StateRecord:
        (record,) = records
        return record

    def append(self, record: StateRecord) -> int:
        """Accepts a record, which is written once its changes are begun: the start offset and the delivery-complete
        count are written with it."""
        self._record = record
        self.end_offset += 1
        return self.end_offset

    def when_committed(self, offset: int, then: WriteCallback) -> None:
        """Writes the accepted record, and calls `then` once it is durable, or with its error."""
        start_offset, count = self.machine.start_offset, self.machine.delivery_complete_count
        written = new_tuple(StateWrite, (self._state_epoch, self._leader_epoch, start_offset, count, self._record))
        write = self._persister.submit(WriteState(self.key, written))
        if write.done():
            then(error_of(write))
        else:
            write.add_done_callback(lambda done: then(error_of(done)))

    def _written(self, records: Sequence[StateRecord], error: KafkaError | None) -> None:
        """Completes the changes of a record that is durable, or undoes them."""
        (record,) = records
        machine = self.machine
        if error is not None and not machine.uncommitted(record):  # no request gets the error
            logger.warning("state not written", partition=str(self.key), reason=str(error))
        if machine.complete(record, error is None, self._clock.now_ms()) and self.queue:
            self._offer()
        if error is not None or any(batch.delivery_state == ARCHIVING for batch in record):
            self.bury()
        if error is not None and seen_by_share_member(error).code in FENCING_ERRORS:
            self._given_up(self)


def error_of(write: asyncio.Future[None]) -> KafkaError | None:
    """Returns the error of a completed write; None if it succeeded."""
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if write.cancelled() else write.exception()
    assert error is None or isinstance(error, KafkaError), repr(error)
    return error


def without(acquired: Iterable[Acquired], left_out: Iterable[tuple[int, int]]) -> list[Acquired]:
    """Returns the acquired ranges without those in `left_out`. Both are in order and don't overlap."""
    remaining: list[Acquired] = []
    gaps = deque(left_out)
    for first, last, delivery_count in acquired:
        start = first
        while gaps and gaps[0][0] <= last:
            if start < gaps[0][0]:
                remaining.append(Acquired(start, gaps[0][0] - 1, delivery_count))
            start = max(gaps[0][1] + 1, start)
            if start > last:
                break
            gaps.popleft()
        if start <= last:
            remaining.append(Acquired(start, last, delivery_count))
    return remaining
