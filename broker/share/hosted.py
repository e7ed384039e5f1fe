"""Hosted: a share partition on this broker, with its log, its persister, and its timer.

The engine decides; this module does the I/O. Everything runs in the event loop, and a fetch reads and acquires in one
turn, so no fetch lock is needed.

Source: SharePartition's I/O (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from broker.clock import Clock, Timer
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.request.turns import Turns
from broker.shards.translations import seen_by_share_member
from broker.share.dead_letters import DeadLetters, letters_of
from broker.share.persister import Persister
from broker.share.queue import FetchQueue
from broker.workers import Workers
from coordinator.group.config import BY_DURATION, GroupConfig, duration_ms
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from coordinator.share_partition.acknowledge import Acknowledgement, begin
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.expiry import archive_aborted, buried, expire, release
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Change, Limits
from coordinator.share_partition.share_partition import NO_DEADLINE, SharePartition
from coordinator.share_partition.states import Lifecycle
from protocol.errors import ErrorCode, KafkaError
from storage.segment.offsets_for_time import searched

if TYPE_CHECKING:
    from broker.share.record_scanner import RecordScanner

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

logger = get_logger("broker.share")


class Hosted:
    """A share partition on this broker."""

    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        config: Callable[[], GroupConfig],
        persister: Persister,
        dead_letters: DeadLetters,
        clock: Clock,
        workers: Workers,
        given_up: Callable[[Hosted], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.engine = SharePartition(Limits())
        self._scanner: RecordScanner | None = None
        self.queue = FetchQueue(lambda: self.engine.is_active and self.engine.can_acquire)
        """The fetches that wait for records, or until more may be in flight."""
        self._config = config
        self._applied_config: GroupConfig | None = None
        self._persister = persister
        self._dead_letters = dead_letters
        self._burying: asyncio.Task[None] | None = None
        self._clock = clock
        self._workers = workers
        self._given_up = given_up
        self._state_epoch = 0
        self._leader_epoch = partition.leader_epoch
        self._alarm: Timer | None = None
        self._alarm_ms = NO_DEADLINE
        self.error: KafkaError | None = None
        """The error that loading failed with; None otherwise."""

    # Life.

    async def load(self) -> None:
        """Loads the stored state. Afterwards the share partition is active or has an error."""
        if (
            self.engine.lifecycle is Lifecycle.FENCED
        ):  # the topic was deleted, or another broker became leader, before loading began
            return
        self.engine.enter(Lifecycle.INITIALIZING)
        try:
            state = await self._persister.read(self.key, self._leader_epoch)
            self.refresh()
            start = self._initial_offset() if state.start_offset == NO_START_OFFSET else state.start_offset
            self._state_epoch = state.state_epoch
            if self.engine.lifecycle is Lifecycle.INITIALIZING:
                self.engine.load(start, state.batches)
                self.bury()
        except Exception as error:
            self._not_loaded(error)
        self.wake()

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
        reset, partition = self._config().share_auto_offset_reset, self.partition
        if reset == "earliest":
            return partition.log_start_offset
        if reset.startswith(BY_DURATION):
            since_ms = self._clock.now_ms() - (duration_ms(reset.removeprefix(BY_DURATION)) or 0)
            record = searched(partial(partition.offset_for_timestamp, since_ms))
            if record is not None and record.offset < partition.high_watermark:
                return record.offset
        return partition.high_watermark

    def stop(self) -> None:
        """Fences the share partition: waiting fetches try again, and load it again."""
        self.engine.fence()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._burying is not None:
            self._burying.cancel()
        if self._scanner is not None:
            self._scanner.stop()
        self.wake()

    def features_changed(self) -> None:
        """Applies the group's options again, because some depend on the cluster's features."""
        self._applied_config = None
        self.refresh()

    def refresh(self) -> None:
        """Applies the group's options if they have changed."""
        config = self._config()
        if config is not self._applied_config:
            self._applied_config = config
            self.engine.limits = Limits(
                config.share_delivery_count_limit,
                config.share_partition_max_record_locks,
                config.share_record_lock_duration_ms,
                config.share_renew_acknowledge_enable,
                self._dead_letters.are_enabled(config),
                config.odradek_share_redelivery_backoff_ms,
                config.odradek_share_redelivery_backoff_max_ms,
            )
            self._hold_back(config)

    def _hold_back(self, config: GroupConfig) -> None:
        if self._scanner is None:
            if not (config.odradek_share_order_by_key or config.odradek_share_delivery_delay_header):
                return
            from broker.share.record_scanner import RecordScanner  # imported here because few groups need it

            name = f"{self.key.group_id}:{self.partition.name}"
            self._scanner = RecordScanner(name, self.engine, self.wake, self._clock, self._workers)
        self._scanner.configure(config)
        self.wake()

    @property
    def scanner(self) -> RecordScanner | None:
        """The scanner of records; None unless the group holds records back by their delivery time or key."""
        return None if self.engine.holdback is None else self._scanner

    @property
    def lag(self) -> int:
        """The number of committed records whose delivery is not complete (KIP-1226)."""
        engine = self.engine
        return max(self.partition.high_watermark - engine.start_offset - engine.delivery_complete_count, 0)

    def wake(self) -> None:
        """Wakes all fetches that wait for records."""
        self.queue.wake_all()

    def _offer(self) -> None:
        """Wakes one waiting fetch after the other while more records can be acquired. If records are held back, wakes
        all at once, because each fetch may get others.
        """
        if self.engine.holdback is None:
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
        engine = self.engine
        acquired = acquire(engine, acquire_request, fetch_offset, fetched, self._clock.now_ms())
        if aborted and acquired:
            archive_aborted(engine, aborted)
            acquired = without(acquired, aborted)
            engine.advance()
        self._arm()
        return acquired

    async def acknowledge(
        self, member_id: str, acknowledgements: Iterable[Acknowledgement], then: WriteCallback, turns: Turns
    ) -> None:
        """Applies acknowledgements; calls `then` with None once they are durable, or with their error.

        They are begun in several turns of the event loop, and written and committed in a single turn. That turn takes
        about eighty milliseconds for twenty thousand records of a batch with alternating acknowledgement types, nearly
        as many as fit into a record of the share coordinator.
        """
        change = Change()
        try:
            with closing(begin(self.engine, member_id, acknowledgements, change, self._clock.now_ms())) as pieces:
                for _ in pieces:
                    await turns.next()
                    if not self.engine.is_active:
                        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)  # unloaded meanwhile
        except KafkaError as error:
            then(error)
            return
        finally:
            self._arm()  # locks that expired meanwhile are timed again
        self._settle(self.engine.seal(change) if change.batches else None, then)

    def release(self, member_id: str) -> None:
        """Releases the records of a member that is gone."""
        self._settle(release(self.engine, member_id), self._log_failure)

    def _log_failure(self, error: KafkaError | None) -> None:
        if error is not None:
            logger.warning("state not written", partition=str(self.key), reason=str(error))

    # Time.

    def _arm(self) -> None:
        """Sets the timer to the next lock that expires, if that is earlier than the current setting."""
        due_ms = self.engine.next_lock_ms
        if due_ms >= self._alarm_ms or not self.engine.is_active:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = due_ms
        self._alarm = self._clock.call_at(due_ms, self._expire)

    def _expire(self) -> None:
        self._alarm, self._alarm_ms = None, NO_DEADLINE
        if not self.engine.is_active:
            return
        try:
            self.refresh()
            change = expire(self.engine, self._clock.now_ms())
            self._settle(change, self._log_failure)
        except Exception:  # the state may be half changed: the next request loads the stored state
            logger.exception("locks of a share partition not expired", partition=str(self.key))
            self._given_up(self)
            return
        self._arm()
        if change is not None or self.engine.has_available:
            self.wake()

    # Dead letters.

    def bury(self) -> None:
        """Starts a task that writes undeliverable records to the dead-letter queue and then archives them."""
        if self._burying is None and self.engine.to_bury():
            self._burying = asyncio.ensure_future(self._bury())

    async def _bury(self) -> None:
        try:
            while self.engine.is_active and (runs := self.engine.to_bury()):
                ranges = [(run.first, run.last) for run in runs]
                letters = letters_of(runs, self.engine.rejected, self.engine.limits.max_delivery_count)
                await self._dead_letters.write(self.key, self.partition, letters, self._config())
                if self.engine.is_active:
                    self._settle(buried(self.engine, ranges), self._log_failure)
        except Exception:
            logger.exception("records not buried", partition=str(self.key))
            self._given_up(self)
        finally:
            self._burying = None

    # Writing.

    def _settle(self, change: Change | None, then: WriteCallback) -> None:
        """Writes a change, then commits or reverts it; before it returns if the write completes at once."""
        if change is None:
            self._arm()
            then(None)
            return
        written = StateWrite(
            self._state_epoch, self._leader_epoch, change.start_offset, change.delivery_complete_count, change.batches
        )
        try:
            future = self._persister.write(self.key, written)
        except KafkaError as error:
            self._complete(change, then, error)
            return
        if future.done():
            self._complete(change, then, error_of(future))
        else:
            future.add_done_callback(lambda done: self._complete(change, then, error_of(done)))

    def _complete(self, change: Change, then: WriteCallback, error: KafkaError | None) -> None:
        member_error = None if error is None else seen_by_share_member(error)
        if self.engine.complete(change, error is None, self._clock.now_ms()) and self.queue:
            self._offer()
        self._arm()
        if change.has_dead_letters or error is not None:
            self.bury()
        if member_error is not None and member_error.code in FENCING_ERRORS:
            self._given_up(self)
        then(member_error)


def error_of(future: asyncio.Future[None]) -> KafkaError | None:
    """Returns the error of a completed write; None if it succeeded."""
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if future.cancelled() else future.exception()
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
