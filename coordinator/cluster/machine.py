"""The cluster's metadata as a machine of the engine: its decisions see the state that is not committed yet.

The state is an image of its own. A restore makes it the committed image again, with the records that are still in the
log. Source: Kafka's QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.decisions import DecisionState
from coordinator.cluster.duties import Duties, Duty
from coordinator.cluster.image import Image
from coordinator.cluster.record import ClusterResult, MetadataBatch, MetadataRecord, encode_batch
from coordinator.cluster.rejections import MAX_RECORDS
from coordinator.engine.errors import Undecided
from coordinator.engine.result import Result, Ticket
from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import KRaftVersionRecord

MAX_RECORDS_AT_ONCE: Final = 500
"""Maximum number of records that are applied and encoded on the event loop. Each takes ten to fifty microseconds."""

BUSY_WAIT_MS: Final = 20
"""Time after which a duty is tried again if a decision was being made."""


class Busy(KafkaError):
    """A thread makes a decision; a duty waits for its end."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "another decision is being made")


ClusterDecision: TypeAlias = Callable[[DecisionState, Ticket[object]], ClusterResult]
"""(state, ticket) → Result. It changes nothing."""


class NewBatch(NamedTuple):
    """Records that are appended as one batch."""

    records: Sequence[MetadataRecord]
    encoded: bytearray
    after: Image | None = None
    """The state with the records, if they have been applied to a copy."""
    kraft_version: int | None = None
    """The kraft.version to which the quorum is upgraded; None for a batch of records. The quorum writes this batch."""


class Lengthy(Undecided):
    """The records of a decision are too many for the event loop."""

    def __init__(self, records: int) -> None:
        super().__init__(f"{records} records")


class MetadataTail(Protocol):
    """The end of the metadata log."""

    @property
    def uncommitted(self) -> Sequence[MetadataBatch]:
        """The batches whose commit the image has not seen, in order."""
        ...

    @property
    def end_offset(self) -> int: ...

    @property
    def epoch(self) -> int: ...


class Watcher(Protocol):
    """Observes the decisions and the duties of the machine."""

    @property
    def is_busy(self) -> bool:
        """True while a thread makes a decision: the state must not change."""
        ...

    def changed(self) -> None:
        """Called after each decision that changed durable or soft state."""
        ...

    def duty_done(self, duty: Duty, records: int) -> None: ...

    def duty_failed(self, duty: Duty, failures: int, error: Exception) -> None: ...


class ClusterMachine:
    """`coordinator.engine.machine.Restorable` over the metadata log. Times are from a monotonic clock."""

    def __init__(
        self,
        committed: Image,
        tail: MetadataTail,
        duties: Duties,
        state: Callable[[Image, ConfigRules, int], DecisionState],
        watcher: Watcher,
    ) -> None:
        """`state` returns the DecisionState for an image, rules and the time."""
        self._committed = committed
        self._tail = tail
        self._duties = duties
        self._state = state
        self._watcher = watcher
        self.image = committed.copy()
        self.is_stopped = False
        """True once the controller performs no more duties."""
        self._expected_ms = 0
        """The earliest time at which the next duty could be done; it was late if it is done later."""

    # Decisions.

    def decide(
        self, decision: ClusterDecision, configs: ConfigRules, ticket: Ticket[object], now_ms: int
    ) -> Result[NewBatch]:
        """Returns a decision with its records encoded. Raises KafkaError, Lengthy if it has many records."""
        state = self._state(self.image, configs, now_ms)
        result = decision(state, ticket)
        if len(result.records) > MAX_RECORDS_AT_ONCE:
            raise Lengthy(len(result.records))
        return self._encoded(result, new_batches(self.image, result.records, state.now_ms))

    def prepare(
        self, decision: ClusterDecision, configs: ConfigRules, ticket: Ticket[object], now_ms: int
    ) -> Result[NewBatch]:
        """Returns a decision whose records are already applied to a copy of the state. For a thread."""
        state = self._state(self.image, configs, now_ms)
        result = decision(state, ticket)
        made = new_batches(self.image, result.records, state.now_ms)
        if made:
            after = self.image.copy()
            for batch in made:
                _apply(after, batch)
            made = [batch._replace(after=after) for batch in made]
        return self._encoded(result, made)

    def _encoded(self, result: ClusterResult, made: Sequence[NewBatch]) -> Result[NewBatch]:
        effects = [self._note_end, *result.effects] if made else result.effects
        return Result(made, result.replies, [*effects, self._watcher.changed] if effects else ())

    def expire(self, now_ms: int) -> Result[NewBatch]:
        """Decides on the duty that is due. If it comes late, the sessions are extended first: heartbeats of that time
        may not have been read yet. Raises Busy."""
        if self._watcher.is_busy:
            raise Busy
        late_ms = now_ms - max(self._duties.next_ms(self.image) or 0, self._expected_ms)
        if self._duties.is_late(late_ms):
            return Result(effects=(partial(self._extend, late_ms, now_ms),))
        duty = self._duties.due(self.image, now_ms)
        if duty is None:
            return Result()
        decided, more = duty.decide(self.image, now_ms)
        records = decided.records
        result = self._encoded(decided, new_batches(self.image, records, self._duties.time_of_day_ms()))
        result.effect(self._done, duty, len(records), now_ms, more=more)
        return result

    def next_deadline_ms(self) -> int | None:
        return None if self.is_stopped else self._duties.next_ms(self.image)

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Makes the duty due again soon, because brokers must be fenced in any case."""
        if isinstance(error, Busy):
            self._expected_ms = now_ms + BUSY_WAIT_MS
            return self._expected_ms
        duty = self._duties.due(self.image, now_ms)
        if duty is not None:
            self._watcher.duty_failed(duty, self._duties.failed(duty, now_ms), error)
        return now_ms

    # Durable state.

    def apply(self, batch: NewBatch) -> None:
        if batch.after is not None:
            self.image = batch.after
        else:
            _apply(self.image, batch)

    def restore(self) -> None:
        self.image = self._committed.copy()
        for batch in self._tail.uncommitted:
            if batch.base_offset > self.image.offset:
                for record in batch.records:
                    self.image.apply(record)
                self.image.offset, self.image.epoch = batch.last_offset, batch.epoch

    # Effects.

    def _note_end(self) -> None:
        self.image.offset, self.image.epoch = self._tail.end_offset - 1, self._tail.epoch

    def _extend(self, late_ms: int, now_ms: int) -> None:
        self._duties.sessions.extend(late_ms, now_ms)
        self._expected_ms = now_ms

    def _done(self, duty: Duty, records: int, now_ms: int, *, more: bool) -> None:
        self._duties.done(duty, now_ms, more=more)
        self._watcher.duty_done(duty, records)


def _apply(image: Image, batch: NewBatch) -> None:
    if batch.kraft_version is not None:
        image.kraft_version = batch.kraft_version
    for record in batch.records:
        image.apply(record)


def new_batches(image: Image, records: Sequence[MetadataRecord], time_of_day_ms: int) -> list[NewBatch]:
    """Returns the records in batches of MAX_RECORDS, encoded at the image's metadata.version. A new kraft.version,
    which is in the quorum's own records, comes first."""
    levels = [record for record in records if isinstance(record, KRaftVersionRecord)]
    if levels:
        records = [record for record in records if not isinstance(record, KRaftVersionRecord)]
    return [NewBatch((), bytearray(), kraft_version=record.k_raft_version) for record in levels] + [
        NewBatch(batch, encode_batch(batch, image.metadata_version, time_of_day_ms))
        for batch in (records[start : start + MAX_RECORDS] for start in range(0, len(records), MAX_RECORDS))
    ]
