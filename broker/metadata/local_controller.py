"""The controller in this process: decides, writes to the metadata log, and answers when its records are committed.

The engine runs its decisions on a state that also has the uncommitted records. A thread makes long decisions.

Source: Kafka's QuorumController.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from broker.clock import Clock, Monotonic, done_by
from broker.logging import get_logger
from broker.metadata.deciding import LongDecisions, is_long
from broker.metadata.file_reads import FileReads
from coordinator.cluster.brokers.activation import abort_record, activation_records, controller_records
from coordinator.cluster.brokers.info import ControllerRegistration
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.controller import THIS_BROKER, Asker
from coordinator.cluster.decisions import DecisionState, decide
from coordinator.cluster.duties import Duties, Duty
from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.machine import ClusterDecision, ClusterMachine, Lengthy, MetadataTail, NewBatch, new_batches
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from coordinator.engine.engine import Engine
from coordinator.engine.result import Result, Ticket, reply
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.types import Uuid

KEY: Final[Hashable] = "cluster metadata"

log = get_logger(__name__)

R = TypeVar("R")

OWN_STOP_MS: Final = 5_000
"""Longest time that the stop of this node waits for other brokers' heartbeats, which they send every two seconds."""


def is_power_of_two(number: int) -> bool:
    """True for 1, 2, 4, 8 and so on."""
    return number & (number - 1) == 0


def _of_controller(error: KafkaError) -> KafkaError:
    """Returns the error of a request whose decision is dropped: the client finds the new controller."""
    return KafkaError(ErrorCode.NOT_CONTROLLER, error.message) if error.code is ErrorCode.NOT_COORDINATOR else error


class DecidedLog(MetadataTail, Protocol):
    """The metadata log as the controller that leads writes it."""

    def append(self, encoded: bytearray, records: Sequence[MetadataRecord]) -> int:
        """Appends the records, which are encoded as a batch, and returns the offset after it. Raises KafkaError, with
        nothing written."""
        ...

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Calls `then` once every record before `offset` is committed, or with the error if it can't be."""
        ...

    def commit_soon(self) -> None:
        """Starts to commit the appended records."""
        ...


class KRaftUpgrading(NamedTuple):
    """The upgrade of the quorum's kraft.version (KIP-853)."""

    problem: Callable[[int], KafkaError | None]
    """Returns why an upgrade to this version isn't possible."""
    upgrade: Callable[[int], int]
    """Appends the version and the voters, and returns the offset after them. Raises KafkaError, with nothing
    written."""


class LocalController:
    """A `coordinator.cluster.controller.Controller` over a log that this node leads; see its docstrings there."""

    def __init__(
        self,
        log: DecidedLog,
        loader: MetadataLoader,
        options: ClusterOptions,
        configs: ConfigRules,
        new_uuid: Callable[[], Uuid],
        clock: Clock,
        upgrading: KRaftUpgrading | None = None,
    ) -> None:
        """`upgrading` upgrades the quorum's kraft.version; None if the log has no quorum that could be upgraded."""
        self._log = log
        self._loader = loader
        self._options = options
        self._configs = configs
        self._new_uuid = new_uuid
        self._clock = clock
        self._upgrading = upgrading
        self._sessions = BrokerSessions(
            options.broker_session_timeout_ms, options.own_broker_id, lambda: self._machine.image.offset
        )
        self._duties = Duties(options, configs, self._sessions, clock.now_ms)
        self._machine = ClusterMachine(loader.image, log, self._duties, self._decision_state, self)
        self._engine: Engine[NewBatch] = Engine(
            Monotonic(clock),
            on_failure=lambda _, error: None,  # the log reports it
            as_answer=_of_controller,
            on_fault=lambda _, error: loader.on_fault(error),
        )
        self._sessions_changed: asyncio.Future[None] | None = None
        """A future that makes a waiting stop of this node check the other brokers again; None if no stop waits."""
        self._file_reads = FileReads(clock)
        self._long_decisions = LongDecisions()
        self._renounced: KafkaError | None = None
        """Set once this controller no longer leads."""

    def activate(self, bootstrap: Callable[[], Sequence[MetadataRecord]], own: ControllerRegistration) -> None:
        """Writes the records of a new controller, before any request; `bootstrap` returns those of a new cluster, `own`
        is this controller."""
        image, options = self._machine.image, self._options
        if self._loader.in_transaction:
            self._write_first([abort_record()])
        if METADATA_VERSION not in image.features:
            self._write_first(activation_records(image, bootstrap(), options.min_insync_replicas))
        self._write_first(controller_records(image, own))
        if not options.has_broker:  # otherwise the broker's registration follows, and is committed with them
            self._log.commit_soon()
        now_ms = self._clock.monotonic_ms()
        self._sessions.begin(image, now_ms)
        self._duties.begin(now_ms)
        self._engine.host(KEY, self._machine, self._append, self._log.when_committed, self._log.end_offset)

    def _write_first(self, records: Sequence[MetadataRecord]) -> None:
        """Writes records while the machine is not active yet: an error fails the start. Raises KafkaError."""
        for batch in new_batches(self._machine.image, records, self._clock.now_ms()):
            self._machine.apply(batch)
            end_offset = self._append([batch], 0)
            self._machine.image.offset, self._machine.image.epoch = end_offset - 1, self._log.epoch

    def _append(self, made: Sequence[NewBatch], _: int) -> int:
        """Appends the batches. Raises KafkaError; then the failed batch left no trace, and no batch follows
        it."""
        end_offset = self._log.end_offset
        for batch in made:
            if batch.kraft_version is None:
                end_offset = self._log.append(batch.encoded, batch.records)
            elif self._upgrading is not None:
                end_offset = self._upgrading.upgrade(batch.kraft_version)
        return end_offset

    def _kraft_problem(self, kraft_version: int) -> KafkaError | None:
        if self._upgrading is not None:
            return self._upgrading.problem(kraft_version)
        if kraft_version <= self._machine.image.kraft_version:
            return None
        return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "The only voter of this cluster is in its configuration.")

    @property
    def active(self) -> LocalController | None:
        return None if self.has_renounced else self

    @property
    def has_renounced(self) -> bool:
        return self._renounced is not None

    async def stop(self) -> None:
        """Ends the controller's duties."""
        self._machine.is_stopped = True
        self._long_decisions.stop()

    def renounce(self, error: KafkaError) -> None:
        """Makes no more decisions, because later records may never be committed. Requests that wait for a commit get
        NOT_CONTROLLER."""
        self._renounced = error
        self._machine.is_stopped = True
        self._engine.unload(KEY)
        self._long_decisions.stop()
        self.changed()

    def _decision_state(self, image: Image, configs: ConfigRules, now_ms: int) -> DecisionState:
        clock = self._clock
        return DecisionState(
            image,
            self._sessions,
            self._options,
            configs,
            self._new_uuid,
            clock.now_ms(),
            monotonic_ms=now_ms,
            kraft_problem=self._kraft_problem,
        )

    async def _decide(self, decision: ClusterDecision, configs: ConfigRules, *, is_long: bool = False) -> object:
        """Returns the answer of a decision once all records that it depends on are committed. A thread makes a long
        decision, and applies many records. Raises NOT_CONTROLLER once this controller has renounced, FilesUnchecked."""
        if not is_long:
            await self._long_decisions.over()
            self._check_active()
            with suppress(Lengthy):
                return await self._engine.submit(KEY, partial(self._machine.decide, decision, configs))
        async with self._long_decisions.turn():
            self._check_active()
            self._engine.expire(KEY)  # the duties that came due during the decision before
            now_ms = self._clock.monotonic_ms()
            ticket: Ticket[object] = Ticket()
            result = await self._long_decisions.make(partial(self._machine.prepare, decision, configs, ticket, now_ms))
            self._check_active()
            answered = self._engine.submit(KEY, lambda *_: result, ticket)
        return await answered

    @property
    def is_busy(self) -> bool:
        return self._long_decisions.is_busy

    def changed(self) -> None:
        """Makes a stop of this node that waits for other brokers check again."""
        if self._sessions_changed is not None and not self._sessions_changed.done():
            self._sessions_changed.set_result(None)

    def duty_done(self, duty: Duty, records: int) -> None:
        if records and not duty.silent:
            log.info("controller task done", task=duty.name, records=records)

    def duty_failed(self, duty: Duty, failures: int, error: Exception) -> None:
        if is_power_of_two(failures):  # a full disk must not cause a line each second
            log.error("a controller task failed", task=duty.name, failures=failures, exc_info=error)

    def _check_active(self) -> None:
        if self._renounced is not None:
            message = f"this controller has renounced: {self._renounced.message}"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)

    async def write(self, records: Sequence[MetadataRecord]) -> None:
        """Appends records that others decided on: ACLs, SCRAM credentials, quotas, delegation tokens."""
        await self._decide(lambda _, ticket: Result(records, [reply(ticket, None)]), self._configs)

    async def submit(self, request: object, response: type[R], asker: Asker = THIS_BROKER) -> R:
        if isinstance(request, BrokerHeartbeatRequest):
            # It counts from its arrival: the decision may wait for others (ClusterControlManager.trackBrokerHeartbeat).
            self._sessions.touch(request.broker_id, request.broker_epoch, self._clock.monotonic_ms())
            if self._is_own_stop(request):
                await self._let_others_read()
        are_many = is_long(request)
        answer = await self._file_reads.decided(
            self._configs,
            lambda configs: self._decide(
                lambda state, ticket: decide(state, request, ticket, asker), configs, is_long=are_many
            ),
        )
        assert isinstance(answer, response)
        return answer

    def _is_own_stop(self, request: BrokerHeartbeatRequest) -> bool:
        return request.want_shut_down and request.broker_id == self._sessions.own_id

    async def _let_others_read(self) -> None:
        """Waits, before this node's broker stops, until the other brokers have fetched its partitions' new leaders,
        because the controller stops with it. Heartbeats have each broker's metadata offset."""
        deadline_ms = self._clock.monotonic_ms() + OWN_STOP_MS
        while not self.has_renounced and not self._sessions.may_stop(self._machine.image, self._sessions.own_id):
            if self._sessions_changed is None or self._sessions_changed.done():
                self._sessions_changed = asyncio.get_running_loop().create_future()
            if not await done_by(self._clock, deadline_ms, self._sessions_changed):
                return
