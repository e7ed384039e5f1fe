"""The share coordinator's shard: the states of the share partitions that hash to one partition of the state topic.

A write becomes a ShareUpdate, and every `snapshot_update_records_per_snapshot`-th write a ShareSnapshot of the whole
state; a write of an older leader epoch or state epoch is fenced. Share partitions without writes get a snapshot now and
then, so that the topic can be pruned. Source: ShareCoordinatorShard (KIP-932, KIP-1226).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from coordinator.cluster.topics.topic import Topic
from coordinator.engine.errors import Rejection
from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Result, Ticket, answered
from coordinator.share.batches import NO_START_OFFSET, StateBatch, combine
from coordinator.share.key import ShareKey
from coordinator.share.records import NOT_YET, ShareRecord, ShareResult, ShareState, Update
from coordinator.share.redundant import Redundant
from coordinator.share.settings import ShareSettings
from protocol.errors import ErrorCode, KafkaError
from protocol.tuples import new_tuple
from protocol.types import Uuid

ANY_EPOCH: Final = -1
"""The epoch of a request that skips the epoch checks."""

NO_COUNT: Final = -1
"""The delivery-complete count if it is unknown."""

FIRST_SNAPSHOT: Final = 0
NO_LEADER_YET: Final = 0


class TopicIdLookup(Protocol):
    """Looks up current topics; the cluster's image does."""

    def topic_by_id(self, topic_id: Uuid) -> Topic | None: ...


class StateWrite(NamedTuple):
    """A leader's write of its share partition's state."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class Summary(NamedTuple):
    """A share partition without its records' states; the defaults describe an unknown one."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_START_OFFSET
    delivery_complete_count: int = NO_COUNT


def _check_not_negative(partition: int, leader_epoch: int = 0, state_epoch: int = 0) -> None:
    """Raises KafkaError(INVALID_REQUEST)."""
    for name, number in (("partition id", partition), ("leader epoch", leader_epoch), ("state epoch", state_epoch)):
        if number < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The {name} cannot be a negative number.")


class ShareShard:
    """`coordinator.engine.machine.Machine` of share partitions."""

    def __init__(self, settings: Callable[[], ShareSettings], topics: TopicIdLookup) -> None:
        self.settings = settings
        self.topics = topics
        self.states: dict[ShareKey, ShareState] = {}
        self.leader_epochs: dict[ShareKey, int] = {}
        self.state_epochs: dict[ShareKey, int] = {}
        self.update_counts: dict[ShareKey, int] = {}
        """Updates since the last snapshot."""
        self.redundant = Redundant()
        self.next_offset = 0
        """The offset of the next record."""
        self._cold_at_ms: int | None = None

    # Decisions.

    def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, ticket: Ticket[None], now_ms: int
    ) -> ShareResult:
        """Initializes a state, in place of any earlier one. Raises INVALID_REQUEST, FENCED_STATE_EPOCH."""
        _check_not_negative(partition=key.partition, state_epoch=state_epoch)
        self._check_state_epoch(key, state_epoch)
        self._check_exists(key)
        present = self.states.get(key)
        state = ShareState(
            snapshot_epoch=FIRST_SNAPSHOT if present is None else present.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=NO_LEADER_YET,
            start_offset=start_offset,
            delivery_complete_count=NO_COUNT if start_offset == NO_START_OFFSET else 0,
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return answered(ticket, None, (ShareRecord(key, state),))

    def write(self, key: ShareKey, written: StateWrite, ticket: Ticket[None], now_ms: int) -> ShareResult:
        """Writes a leader's change. Raises INVALID_REQUEST for an uninitialized share partition, FENCED_LEADER_EPOCH,
        FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION."""
        _check_not_negative(key.partition, written.leader_epoch, written.state_epoch)
        state = self._initialized(key, "Write")
        self._check_leader_epoch(key, written.leader_epoch)
        self._check_state_epoch(key, written.state_epoch)
        self._check_exists(key)
        if any(state_batch.first_offset > state_batch.last_offset for state_batch in written.batches):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A state batch ends before it begins.")
        record = self._record(key, state, written, state.leader_epoch, now_ms)
        return answered(ticket, None, (record,))

    def read(self, key: ShareKey, leader_epoch: int, ticket: Ticket[ShareState], now_ms: int) -> ShareResult:
        """Answers a leader with the state, and fences the writes of earlier leaders. Raises INVALID_REQUEST,
        FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION."""
        _check_not_negative(key.partition, leader_epoch)
        state = self._initialized(key, "Read")
        self._check_leader_epoch(key, leader_epoch)
        self._check_exists(key)
        if self.leader_epochs.get(key) == leader_epoch:
            return answered(ticket, state)
        same = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())
        record = self._record(key, state, same, leader_epoch, now_ms)
        return answered(ticket, state, (record,))

    def summary(self, key: ShareKey, ticket: Ticket[Summary], now_ms: int) -> ShareResult:
        """Answers with the summary of a state. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        self._check_exists(key)
        state = self.states.get(key)
        summary = Summary() if state is None else Summary(*state[1:5])
        return answered(ticket, summary)

    def delete(self, key: ShareKey, ticket: Ticket[None], now_ms: int) -> ShareResult:
        """Deletes the state, if there is one. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        self._check_exists(key)
        records = (ShareRecord(key, None),) if key in self.states else ()
        return answered(ticket, None, records)

    def topics_deleted(self, topic_ids: Collection[Uuid], ticket: Ticket[None], now_ms: int) -> ShareResult:
        """Deletes the states of deleted topics."""
        records = [ShareRecord(key, None) for key in self.states if key.topic_id in topic_ids]
        return answered(ticket, None, records)

    def _record(
        self, key: ShareKey, state: ShareState, written: StateWrite, leader_epoch: int, now_ms: int
    ) -> ShareRecord:
        """Returns an update, or a snapshot after enough updates. The start offset doesn't move back."""
        start_offset, count = max(written.start_offset, state.start_offset), written.delivery_complete_count
        if written.start_offset == state.start_offset:
            count = max(count, state.delivery_complete_count)
        elif written.start_offset < state.start_offset:
            count = state.delivery_complete_count
        if self.update_counts.get(key, 0) < self.settings().snapshot_update_records_per_snapshot:
            batches = combine((), written.batches, start_offset)
            update = new_tuple(Update, (state.snapshot_epoch, leader_epoch, start_offset, count, batches))
            return new_tuple(ShareRecord, (key, update, NOT_YET))
        snapshot = ShareState(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=count,
            created_ms=now_ms,
            written_ms=now_ms,
            batches=combine(state.batches, written.batches, start_offset),
        )
        return ShareRecord(key, snapshot)

    # Checks.

    def _initialized(self, key: ShareKey, what: str) -> ShareState:
        state = self.states.get(key)
        if state is None:
            message = f"{what} operation on uninitialized share partition not allowed."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        return state

    def _check_leader_epoch(self, key: ShareKey, epoch: int) -> None:
        if self.leader_epochs.get(key, epoch) > epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)

    def _check_state_epoch(self, key: ShareKey, epoch: int) -> None:
        if self.state_epochs.get(key, epoch) > epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)

    def _check_exists(self, key: ShareKey) -> None:
        _check_not_negative(key.partition)
        topic = self.topics.topic_by_id(key.topic_id)
        if topic is None or key.partition not in topic.partitions:
            raise Rejection(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # Records.

    def apply(self, record: ShareRecord) -> None:
        """Applies a record; no other method changes durable state."""
        key, value, offset = record
        offset = self.next_offset if offset == NOT_YET else offset
        self.next_offset = offset + 1
        if isinstance(value, Update):
            self._apply_update(key, value)
        elif value is not None:
            self._apply_snapshot(key, value)
            self.redundant.snapshot(key, offset)
        else:
            for table in (self.states, self.leader_epochs, self.state_epochs, self.update_counts):
                table.pop(key, None)
            self.redundant.tombstone(key, offset)

    def _apply_snapshot(self, key: ShareKey, state: ShareState) -> None:
        self.leader_epochs[key] = max(self.leader_epochs.get(key, state.leader_epoch), state.leader_epoch)
        self.state_epochs[key] = max(self.state_epochs.get(key, state.state_epoch), state.state_epoch)
        self.states[key] = state
        if self.update_counts.get(key, 0) >= self.settings().snapshot_update_records_per_snapshot:
            self.update_counts[key] = 0

    def _apply_update(self, key: ShareKey, update: Update) -> None:
        self.leader_epochs[key] = max(self.leader_epochs.get(key, update.leader_epoch), update.leader_epoch)
        self.update_counts[key] = self.update_counts.get(key, 0) + 1
        present = self.states.get(key)
        if present is None:
            self.states[key] = ShareState(
                update.snapshot_epoch,
                0,
                update.leader_epoch,
                update.start_offset,
                update.delivery_complete_count,
                0,
                0,
                update.batches,
            )
            return
        start_offset = present.start_offset if update.start_offset == NO_START_OFFSET else update.start_offset
        leader_epoch = present.leader_epoch if update.leader_epoch == ANY_EPOCH else update.leader_epoch
        batches = combine(present.batches, update.batches, start_offset)
        changed = start_offset, update.delivery_complete_count, present.created_ms, present.written_ms, batches
        self.states[key] = new_tuple(ShareState, (present.snapshot_epoch, present.state_epoch, leader_epoch, *changed))

    # Time.

    def activate(self, now_ms: int, end_offset: int) -> None:
        """Starts the shard after all records are loaded, up to this offset of the log."""
        self.next_offset = end_offset
        self._begin_interval(now_ms)

    def expire(self, now_ms: int) -> ShareResult:
        """Writes snapshots of share partitions without a snapshot in the interval. Writes none if no share partition
        has changed since its last such snapshot."""
        interval_ms = self.settings().cold_partition_snapshot_interval_ms
        records: list[ShareRecord] = []
        if any(state.created_ms == state.written_ms for state in self.states.values()):
            records += (
                ShareRecord(key, state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms))
                for key, state in self.states.items()
                if now_ms - state.written_ms >= interval_ms
            )
        return Result(records, (), (partial(self._begin_interval, now_ms),))

    def _begin_interval(self, now_ms: int) -> None:
        self._cold_at_ms = now_ms + self.settings().cold_partition_snapshot_interval_ms

    def next_deadline_ms(self) -> int | None:
        return self._cold_at_ms

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Leaves share partitions without their snapshot until the next interval."""
        self._begin_interval(now_ms)
        return now_ms + EXPIRY_RETRY_MS
