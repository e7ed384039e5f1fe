"""The controller in this process: decides, writes to the metadata log, and answers when its records are committed.

It decides on a state of its own, which is ahead of the image by its uncommitted records. When a write fails, it throws
that state away, and begins again with the records that are committed or may still be. Source: Kafka's QuorumController.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from broker.clock import Clock
from broker.metadata.deciding import LongDecisions, is_long
from broker.metadata.duty_timer import DutyTimer
from broker.metadata.led_log import LedLog
from coordinator.cluster.brokers.activation import abort_record, activation_records, controller_records
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.cluster.decided import MAX_RECORDS, Decided
from coordinator.cluster.decisions import DecisionState, decide
from coordinator.cluster.duties import Duties
from coordinator.cluster.image import METADATA_VERSION
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.types import Uuid

A = TypeVar("A")
R = TypeVar("R")

OWN_STOP_MS: Final = 5_000
"""How long the stop of this node waits for other brokers' heartbeats, of which there is one each two seconds."""


class LocalController:
    """A `coordinator.cluster.controller.Controller` over a log that this node leads; docstrings are there."""

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
        """`on_failure` is called once when the controller cannot write any more."""
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
        """Done when a stop of this node that waits for other brokers looks again; None if there is none."""
        self._long_decisions = LongDecisions()
        busy = self._long_decisions
        self._timer = DutyTimer(duties, clock, lambda: self._state, self._write_soon, lambda: busy.is_busy)
        log.on_failure = self._renounce

    def activate(self, bootstrap: Callable[[], Sequence[MetadataRecord]]) -> None:
        """Writes the records of a new controller, before any request; `bootstrap` gives those of a new cluster."""
        if self._loader.in_transaction:
            self._write([abort_record()])
        if METADATA_VERSION not in self._state.features:
            self._write(activation_records(self._state, bootstrap(), self._options.min_insync_replicas))
        options = self._options
        self._write(controller_records(self._state, options.node_id, self._new_uuid(), options.controller_listeners))
        if not options.has_broker:  # else its registration follows, and is committed with them
            self._log.commit_soon()
        self._sessions.begin(self._state, self._clock.monotonic_ms())
        self._timer.begin()

    @property
    def has_renounced(self) -> bool:
        return self._log.failed is not None

    async def stop(self) -> None:
        """Does nothing by itself any more."""
        self._timer.stop()
        self._long_decisions.stop()

    def _renounce(self, error: KafkaError) -> None:
        """Goes back to the last committed state, since later records may never be committed."""
        self._state = self._loader.image.copy()
        self._timer.stop()
        self._wake()
        self._on_failure(error)

    def _revert(self) -> None:
        """Goes back to the state of the log, after a write that failed halfway."""
        self._state = self._loader.image.copy()
        for batch in self._log.uncommitted:
            for record in batch.records:
                self._state.apply(record)
            self._state.offset, self._state.epoch = batch.last_offset, batch.epoch

    def _write(self, records: Sequence[MetadataRecord]) -> int:
        """Applies and appends the records, in batches of MAX_RECORDS, and returns the offset behind them. Raises
        KafkaError: then the batch that failed has left no trace, and no batch follows it."""
        end_offset = self._log.end_offset
        for start in range(0, len(records), MAX_RECORDS):
            batch = records[start : start + MAX_RECORDS]
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

    def _write_soon(self, records: Sequence[MetadataRecord]) -> None:
        self._write(records)
        self._log.commit_soon()
        self._wake()

    async def _decide(self, decision: Callable[[DecisionState], Decided[A]], *, is_long: bool = False) -> A:
        """Decides, applies and appends, carries out the effects, and returns the answer once all records that it
        depends on are committed. A thread makes a long decision. Raises NOT_CONTROLLER once this controller has
        renounced."""
        await self._long_decisions.over()
        self._check_active()
        clock = self._clock
        state = DecisionState(
            self._state,
            self._sessions,
            self._options,
            self._configs,
            self._new_uuid,
            clock.now_ms(),
            clock.monotonic_ms(),
        )
        if is_long:
            decided = await self._long_decisions.make(lambda: decision(state))
            self._check_active()
        else:
            decided = decision(state)
        end_offset = self._write(decided.records)
        self._carry_out(decided)
        await self._log.committed(end_offset)
        return decided.response

    def _carry_out(self, decided: Decided[A]) -> None:
        """Carries out the effects of a decision whose records are appended."""
        for effect in decided.effects:
            effect.carry_out(self._sessions, self._state.offset)
        if decided.effects:
            self._timer.arm()
            self._wake()

    def _wake(self) -> None:
        """Wakes a stop of this node that waits for other brokers."""
        if self._sessions_changed is not None and not self._sessions_changed.done():
            self._sessions_changed.set_result(None)

    def _check_active(self) -> None:
        if self._log.failed is not None:
            message = f"this controller has renounced: {self._log.failed.message}"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)

    async def write(self, records: Sequence[MetadataRecord]) -> None:
        """Appends records that others decided on: ACLs, SCRAM credentials, quotas, delegation tokens."""
        await self._decide(lambda _: Decided(records, None))

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        if isinstance(request, BrokerHeartbeatRequest) and self._is_own_stop(request):
            await self._let_others_read()
        answer = await self._decide(lambda state: decide(state, request, asker), is_long=is_long(request))
        assert isinstance(answer, response)
        return answer

    def _is_own_stop(self, request: BrokerHeartbeatRequest) -> bool:
        return request.want_shut_down and request.broker_id == self._sessions.own_id

    async def _let_others_read(self) -> None:
        """Waits before this node's own broker stops until the other brokers have read who leads in its place: the
        controller, which tells them, stops with it. Heartbeats tell how far a broker has read."""
        from broker.peers.waiting import done_by  # a start needs it no more than any peer

        deadline_ms = self._clock.monotonic_ms() + OWN_STOP_MS
        while not self.has_renounced and not self._sessions.may_stop(self._state, self._sessions.own_id):
            if self._sessions_changed is None or self._sessions_changed.done():
                self._sessions_changed = asyncio.get_running_loop().create_future()
            if not await done_by(self._clock, deadline_ms, self._sessions_changed):
                return
