"""The controller in this process: decides, writes to the metadata log, and answers when its records are committed.

It decides on its own state, which also has its uncommitted records. If a write fails, it discards that state, and
starts again with the records that are, or may still be, committed.

Source: Kafka's QuorumController.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from broker.clock import Clock, done_by
from broker.metadata.deciding import LongDecisions, are_many, is_long
from broker.metadata.duty_timer import DutyTimer
from broker.metadata.file_reads import FileReads
from broker.metadata.led_log import LedLog
from coordinator.cluster.brokers.activation import abort_record, activation_records, controller_records
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.cluster.decided import MAX_RECORDS, Decided
from coordinator.cluster.decisions import DecisionState, decide
from coordinator.cluster.duties import Duties
from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord, encode_batch
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.types import Uuid

A = TypeVar("A")
R = TypeVar("R")

OWN_STOP_MS: Final = 5_000
"""Longest time that the stop of this node waits for other brokers' heartbeats, which they send every two seconds."""


class LongDecision(NamedTuple, Generic[A]):
    """A long decision, whose records a thread has applied to a copy of the state, and encoded in batches."""

    decided: Decided[A]
    state: Image
    batches: Sequence[tuple[Sequence[MetadataRecord], bytearray]]


def prepared(decided: Decided[A], before: DecisionState) -> LongDecision[A]:
    """Applies and encodes the records of a decision; for a thread."""
    state = before.image.copy() if decided.records else before.image
    batches: list[tuple[Sequence[MetadataRecord], bytearray]] = []
    for batch in in_batches(decided.records):
        level = state.metadata_version
        for record in batch:
            state.apply(record)
        batches.append((batch, encode_batch(batch, level, before.now_ms)))
    return LongDecision(decided, state, batches)


def in_batches(records: Sequence[MetadataRecord]) -> Iterator[Sequence[MetadataRecord]]:
    """Yields the records in batches of MAX_RECORDS."""
    return (records[start : start + MAX_RECORDS] for start in range(0, len(records), MAX_RECORDS))


class LocalController:
    """A `coordinator.cluster.controller.Controller` over a log that this node leads; see its docstrings there."""

    def __init__(
        self,
        log: LedLog,
        loader: MetadataLoader,
        options: ClusterOptions,
        configs: ConfigRules,
        new_uuid: Callable[[], Uuid],
        on_failure: Callable[[KafkaError], None],
        clock: Clock,
    ) -> None:
        """`on_failure` is called once, if the controller can no longer write."""
        self._log = log
        self._loader = loader
        self._options = options
        self._configs = configs
        self._new_uuid = new_uuid
        self._on_failure = on_failure
        self._clock = clock
        self._state = loader.image.copy()
        self._sessions = BrokerSessions(options.broker_session_timeout_ms, options.own_broker_id)
        duties = Duties(options, configs, self._sessions, clock.now_ms)
        self._sessions_changed: asyncio.Future[None] | None = None
        """A future that makes a waiting stop of this node check the other brokers again; None if no stop waits."""
        self._file_reads = FileReads(clock)
        self._long_decisions = LongDecisions()
        busy = self._long_decisions
        self._timer = DutyTimer(duties, clock, lambda: self._state, self._write_soon, lambda: busy.is_busy)
        log.on_failure = self._renounce

    def activate(self, bootstrap: Callable[[], Sequence[MetadataRecord]]) -> None:
        """Writes the records of a new controller, before any request; `bootstrap` returns those of a new cluster."""
        if self._loader.in_transaction:
            self._write([abort_record()])
        if METADATA_VERSION not in self._state.features:
            self._write(activation_records(self._state, bootstrap(), self._options.min_insync_replicas))
        options = self._options
        self._write(controller_records(self._state, options.node_id, self._new_uuid(), options.controller_listeners))
        if not options.has_broker:  # otherwise the broker's registration follows, and is committed with them
            self._log.commit_soon()
        self._sessions.begin(self._state, self._clock.monotonic_ms())
        self._timer.begin()

    @property
    def has_renounced(self) -> bool:
        return self._log.failed is not None

    async def stop(self) -> None:
        """Ends the controller's duties."""
        self._timer.stop()
        self._long_decisions.stop()

    def _renounce(self, error: KafkaError) -> None:
        """Returns to the last committed state, because later records may never be committed."""
        self._state = self._loader.image.copy()
        self._timer.stop()
        self._wake()
        self._on_failure(error)

    def _revert(self) -> None:
        """Returns to the state of the log after a write that failed halfway."""
        self._state = self._loader.image.copy()
        for batch in self._log.uncommitted:
            for record in batch.records:
                self._state.apply(record)
            self._state.offset, self._state.epoch = batch.last_offset, batch.epoch

    def _write(self, records: Sequence[MetadataRecord]) -> int:
        """Applies and appends the records, in batches of MAX_RECORDS, and returns the offset after them. Raises
        KafkaError; then the failed batch left no trace, and no batch follows it.
        """
        end_offset = self._log.end_offset
        for batch in in_batches(records):
            level = self._state.metadata_version
            try:
                for record in batch:
                    self._state.apply(record)
                end_offset = self._log.append(batch, level)
            except Exception:
                self._revert()
                raise
            self._state.offset, self._state.epoch = end_offset - 1, self._log.epoch
        return end_offset

    def _write_prepared(self, long_decision: LongDecision[A]) -> int:
        """Appends the batches of a long decision, and returns the offset after them. Raises as `_write` does."""
        end_offset = self._log.end_offset
        try:
            for batch, encoded in long_decision.batches:
                end_offset = self._log.append_encoded(encoded, batch)
        except Exception:
            self._revert()
            raise
        if long_decision.batches:
            self._state = long_decision.state
            self._state.offset, self._state.epoch = end_offset - 1, self._log.epoch
        return end_offset

    def _write_soon(self, records: Sequence[MetadataRecord]) -> None:
        self._write(records)
        self._log.commit_soon()
        self._wake()

    async def _decide(
        self, decision: Callable[[DecisionState], Decided[A]], configs: ConfigRules, *, is_long: bool = False
    ) -> A:
        """Decides, applies and appends, carries out the effects, and returns the answer once all records that it
        depends on are committed. A thread makes a long decision, and applies many records. Raises NOT_CONTROLLER
        once this controller has renounced, FilesUnchecked."""
        await self._long_decisions.over()
        self._check_active()
        clock = self._clock
        state = DecisionState(
            self._state,
            self._sessions,
            self._options,
            configs,
            self._new_uuid,
            clock.now_ms(),
            clock.monotonic_ms(),
        )
        decided = None if is_long else decision(state)
        if decided is None or are_many(decided.records):
            made = decided
            long_decision = await self._long_decisions.make(lambda: prepared(made or decision(state), state))
            self._check_active()
            decided = long_decision.decided
            end_offset = self._write_prepared(long_decision)
        else:
            end_offset = self._write(decided.records)
        self._carry_out(decided)
        await self._log.committed(end_offset)
        return decided.response

    def _carry_out(self, decided: Decided[A]) -> None:
        """Carries out the effects of a decision, after its records were appended."""
        for effect in decided.effects:
            effect.carry_out(self._sessions, self._state.offset)
        if decided.effects:
            self._timer.arm()
            self._wake()

    def _wake(self) -> None:
        """Makes a stop of this node that waits for other brokers check again."""
        if self._sessions_changed is not None and not self._sessions_changed.done():
            self._sessions_changed.set_result(None)

    def _check_active(self) -> None:
        if self._log.failed is not None:
            message = f"this controller has renounced: {self._log.failed.message}"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)

    async def write(self, records: Sequence[MetadataRecord]) -> None:
        """Appends records that others decided on: ACLs, SCRAM credentials, quotas, delegation tokens."""
        await self._decide(lambda _: Decided(records, None), self._configs)

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        if isinstance(request, BrokerHeartbeatRequest):
            # It counts from its arrival: the decision may wait for others (ClusterControlManager.trackBrokerHeartbeat).
            self._sessions.touch(request.broker_id, request.broker_epoch, self._clock.monotonic_ms())
            if self._is_own_stop(request):
                await self._let_others_read()
        are_many = is_long(request)
        answer = await self._file_reads.decided(
            self._configs,
            lambda configs: self._decide(lambda state: decide(state, request, asker), configs, is_long=are_many),
        )
        assert isinstance(answer, response)
        return answer

    def _is_own_stop(self, request: BrokerHeartbeatRequest) -> bool:
        return request.want_shut_down and request.broker_id == self._sessions.own_id

    async def _let_others_read(self) -> None:
        """Waits, before this node's broker stops, until the other brokers have fetched its partitions' new leaders,
        because the controller stops with it. Heartbeats have each broker's metadata offset."""
        deadline_ms = self._clock.monotonic_ms() + OWN_STOP_MS
        while not self.has_renounced and not self._sessions.may_stop(self._state, self._sessions.own_id):
            if self._sessions_changed is None or self._sessions_changed.done():
                self._sessions_changed = asyncio.get_running_loop().create_future()
            if not await done_by(self._clock, deadline_ms, self._sessions_changed):
                return
