"""Hosted: a share partition at work, with the log that it reads, the persister that it writes to, and its alarm.

The engine decides; here is what it cannot do itself. Everything runs in the event loop, and a fetch reads and acquires
without letting others in between, so that there is no fetch lock. Source: SharePartition's I/O (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from broker.clock import Clock, Timer
from broker.coordinators.translations import seen_by_share_member
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.share.dead_letters import DeadLetters, letters_of
from broker.share.persister import Persister
from broker.share.queue import Queue
from broker.workers import Workers
from coordinator.group.config import BY_DURATION, GroupConfig, duration_ms
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from coordinator.share_partition.acknowledge import Said, acknowledge
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.expiry import archive_aborted, buried, expire, release
from coordinator.share_partition.request import Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Change, Limits
from coordinator.share_partition.share_partition import NO_DEADLINE, SharePartition
from coordinator.share_partition.states import Lifecycle
from protocol.errors import ErrorCode, KafkaError
from storage.segment.offsets_for_time import searched

if TYPE_CHECKING:
    from broker.share.learning import Learning

ENDS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which the share partition is given up, and made anew when it is asked for again."""

Then = Callable[[KafkaError | None], None]
"""Told how a write went."""

log = get_logger("broker.share")


class Hosted:
    """One share partition of this broker."""

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
        self._learning: Learning | None = None
        self.queue = Queue(lambda: self.engine.is_active and self.engine.can_acquire)
        """The fetches that wait for records, or for room."""
        self._config = config
        self._known_config: GroupConfig | None = None
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
        """Why it could not be loaded."""

    # Life.

    async def load(self) -> None:
        """Reads what is stored; afterwards it is active, or has an error."""
        if self.engine.lifecycle is Lifecycle.FENCED:  # its topic or its leadership went before this began
            return
        self.engine.enter(Lifecycle.INITIALIZING)
        try:
            state = await self._persister.read(self.key, self._leader_epoch)
            self.refresh()
            start = self._beginning() if state.start_offset == NO_START_OFFSET else state.start_offset
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
            log.warning("share partition not loaded", partition=str(self.key), reason=str(error))
        else:
            self.error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            log.error("share partition not loaded", partition=str(self.key), exc_info=error)
        self._given_up(self)

    def _beginning(self) -> int:
        """Where a group starts that has no offset yet (share.auto.offset.reset)."""
        reset, partition = self._config().share_auto_offset_reset, self.partition
        if reset == "earliest":
            return partition.log_start_offset
        if reset.startswith(BY_DURATION):
            since = self._clock.now_ms() - (duration_ms(reset.removeprefix(BY_DURATION)) or 0)
            found = searched(partial(partition.offset_for_timestamp, since))
            if found is not None and found.offset < partition.high_watermark:
                return found.offset
        return partition.high_watermark

    def stop(self) -> None:
        """Fenced: whoever waits looks again, and finds another."""
        self.engine.fence()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._burying is not None:
            self._burying.cancel()
        if self._learning is not None:
            self._learning.stop()
        self.wake()

    def features_changed(self) -> None:
        """What the options mean depends on them."""
        self._known_config = None
        self.refresh()

    def refresh(self) -> None:
        """The group's options as they are now."""
        config = self._config()
        if config is not self._known_config:
            self._known_config = config
            self.engine.limits = Limits(
                config.share_delivery_count_limit,
                config.share_partition_max_record_locks,
                config.share_record_lock_duration_ms,
                config.share_renew_acknowledge_enable,
                self._dead_letters.are_wanted(config),
                config.odradek_share_redelivery_backoff_ms,
                config.odradek_share_redelivery_backoff_max_ms,
            )
            self._hold_back(config)

    def _hold_back(self, config: GroupConfig) -> None:
        if self._learning is None:
            if not (config.odradek_share_order_by_key or config.odradek_share_delivery_delay_header):
                return
            from broker.share.learning import Learning  # few groups need it

            name = f"{self.key.group_id}:{self.partition.name}"
            self._learning = Learning(name, self.engine, self.wake, self._clock, self._workers)
        self._learning.obey(config)
        self.wake()

    @property
    def learning(self) -> Learning | None:
        """How records are looked into, if the group has them held back by their time or their key."""
        return None if self.engine.holdback is None else self._learning

    def wake(self) -> None:
        """Whoever waits for records looks again."""
        self.queue.wake_all()

    def _offer(self) -> None:
        """There may be room: whoever waits looks in turn. Where records are held back each may find others."""
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
        """What of the batches is the member's now, batches of aborted transactions left out."""
        engine = self.engine
        acquired = acquire(engine, acquire_request, fetch_offset, fetched, self._clock.now_ms())
        if aborted and acquired:
            archive_aborted(engine, aborted)
            acquired = without(acquired, aborted)
            engine.advance()
        self._arm()
        return acquired

    def acknowledge(self, member_id: str, said: Iterable[Said], then: Then) -> None:
        """Takes acknowledgements; `then` is told once they are durable, or why they are not taken."""
        try:
            change = acknowledge(self.engine, member_id, said, self._clock.now_ms())
        except KafkaError as error:
            self._arm()
            then(error)
            return
        self._settle(change, then)

    def release(self, member_id: str) -> None:
        """The member is gone."""
        self._settle(release(self.engine, member_id), self._note)

    def _note(self, error: KafkaError | None) -> None:
        if error is not None:
            log.warning("state not written", partition=str(self.key), reason=str(error))

    # Time.

    def _arm(self) -> None:
        """Have an alarm when the next lock runs out, or earlier."""
        due_ms = self.engine.next_lock_ms
        if due_ms >= self._alarm_ms or not self.engine.is_active:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = due_ms
        self._alarm = self._clock.call_at(due_ms, self._ring)

    def _ring(self) -> None:
        self._alarm, self._alarm_ms = None, NO_DEADLINE
        if not self.engine.is_active:
            return
        try:
            self.refresh()
            change = expire(self.engine, self._clock.now_ms())
            self._settle(change, self._note)
        except Exception:  # the state may be half changed: whoever asks next gets what is stored
            log.exception("locks of a share partition not looked after", partition=str(self.key))
            self._given_up(self)
            return
        self._arm()
        if change is not None or self.engine.looks_back:
            self.wake()

    # Dead letters.

    def bury(self) -> None:
        """Has records that were given up written to the dead-letter queue, then archived."""
        if self._burying is None and self.engine.to_bury():
            self._burying = asyncio.ensure_future(self._bury())

    async def _bury(self) -> None:
        try:
            while self.engine.is_active and (runs := self.engine.to_bury()):
                ranges = [(run.first, run.last) for run in runs]
                letters = letters_of(runs, self.engine.rejected, self.engine.limits.max_delivery_count)
                await self._dead_letters.write(self.key, self.partition, letters, self._config())
                if self.engine.is_active:
                    self._settle(buried(self.engine, ranges), self._note)
        except Exception:
            log.exception("records not buried", partition=str(self.key))
            self._given_up(self)
        finally:
            self._burying = None

    # Writing.

    def _settle(self, change: Change | None, then: Then) -> None:
        """Writes a change, and commits or undoes it, at once if that can be."""
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

    def _complete(self, change: Change, then: Then, error: KafkaError | None) -> None:
        seen = None if error is None else seen_by_share_member(error)
        if self.engine.complete(change, error is None, self._clock.now_ms()) and self.queue:
            self._offer()
        self._arm()
        if change.has_dead_letters or error is not None:
            self.bury()
        if seen is not None and seen.code in ENDS:
            self._given_up(self)
        then(seen)


def error_of(future: asyncio.Future[None]) -> KafkaError | None:
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if future.cancelled() else future.exception()
    assert error is None or isinstance(error, KafkaError), repr(error)
    return error


def without(acquired: Iterable[Acquired], left_out: Iterable[tuple[int, int]]) -> list[Acquired]:
    """The ranges without others, which are in order and do not overlap."""
    result = list(acquired)
    for first, last in left_out:
        pieces: list[Acquired] = []
        for each in result:
            if each.last < first or each.first > last:
                pieces.append(each)
                continue
            if each.first < first:
                pieces.append(Acquired(each.first, first - 1, each.delivery_count))
            if each.last > last:
                pieces.append(Acquired(last + 1, each.last, each.delivery_count))
        result = pieces
    return result
