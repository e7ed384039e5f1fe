"""A broker's life with controllers in other processes: registered, caught up, unfenced, kept alive by heartbeats, shut
down.

node.register(…) → await node.caught_up() → logs are recovered meanwhile → await node.unfence() → … → await node.leave()

Heartbeats continue from the registration until the controller lets the broker shut down. An error that ends them stops
the broker.

Source: Kafka's BrokerLifecycleManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Sequence
from typing import Final, NamedTuple

from broker.clock import Clock, done_by, pause
from broker.logging import get_logger
from broker.metadata.node import LEAVE_MS, LEAVING, UNKNOWN_EPOCH, Incarnation, Node, NodeState
from broker.metadata.placements import Placements
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.controller import Controller
from coordinator.cluster.image import METADATA_VERSION, Image
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationRequest
from protocol.types import TopicPartition, Uuid

SOON_MS: Final = 10
"""Time to the next heartbeat while the broker catches up, so that a start with little to do is quick."""

FIRST_WITH_DIRECTORIES: Final = 17
"""The level of metadata.version, 3.7-IV2, from which registrations have log directories (KIP-858)."""

FATAL: Final = frozenset({ErrorCode.INCONSISTENT_CLUSTER_ID})
"""Errors of a registration that no retry can mend: this broker belongs to another cluster."""

log = get_logger(__name__)


class LifecycleTimes(NamedTuple):
    """broker.heartbeat.interval.ms, broker.session.timeout.ms, initial.broker.registration.timeout.ms and
    log.dir.failure.timeout.ms."""

    heartbeat_ms: int = 2_000
    session_ms: int = 9_000
    registration_ms: int = 60_000
    directory_failure_ms: int = 30_000


class RemoteNode(Node):
    """This broker as a member of a cluster whose controllers are other processes."""

    begins_anew = True
    """True, as in Kafka: a new directory was formatted by the operator, and the controllers know that it is empty."""

    def __init__(
        self,
        incarnation: Incarnation,
        controller: Controller,
        image: Image,
        *,
        clock: Clock,
        draw: Callable[[], float],
        times: LifecycleTimes,
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        """`draw` returns random numbers from 0 up to 1; `on_failure` is called once, if heartbeats can no longer be
        sent.
        """
        super().__init__(incarnation, controller, image, clock)
        self._on_failure = on_failure
        self._draw = draw
        self._times = times
        self._backoff = Backoff(initial_ms=100, max_ms=max(times.session_ms, 100), jitter=0.02)
        loop = asyncio.get_running_loop()
        self._caught_up: asyncio.Future[None] = loop.create_future()
        self._unfenced: asyncio.Future[None] = loop.create_future()
        self._may_shut_down: asyncio.Future[None] = loop.create_future()
        self._hurried: asyncio.Future[None] = loop.create_future()
        self._ready = False
        """True once the logs are open, so that the broker may be unfenced."""
        self._leaving = 0
        """Number of answered heartbeats that requested a shutdown."""
        self._answered_ms = clock.monotonic_ms()
        """The time of the last answered heartbeat."""
        self._problem = ""
        self._request: BrokerRegistrationRequest | None = None
        """The accepted registration; None before the first."""
        self._replaced_ms: int | None = None
        """The time when another incarnation was registered in place of this broker; None if there is none."""
        self._unnotified: dict[Uuid, asyncio.Future[None]] = {}
        """Failed log directories that no controller knows yet."""
        self._heartbeats: asyncio.Task[None] | None = None
        self._placements = Placements(self.assign_directories, clock, draw)

    @property
    def is_in_touch(self) -> bool:
        return self.clock.monotonic_ms() < self._answered_ms + self._times.session_ms

    async def register(self, endpoints: Sequence[Endpoint], failed: Container[str] = ()) -> None:
        """Registers the node, and starts its heartbeats. Retries for initial.broker.registration.timeout.ms, then
        raises the last KafkaError.
        """
        request = self._registration(endpoints, failed)
        request.log_dirs.sort()  # in the order of Kafka's brokers
        deadline_ms = self.clock.monotonic_ms() + self._times.registration_ms
        failures = 0
        while self.broker_epoch == UNKNOWN_EPOCH:
            try:
                await self._submit_registration(request)
            except KafkaError as error:
                failures += 1
                delay_ms = self._backoff.delay_ms(failures, self._draw())
                if error.code in FATAL or self.clock.monotonic_ms() + delay_ms >= deadline_ms:
                    raise self._not_registered(error) from error
                self._log_problem("the controller does not register this broker yet", error)
                await pause(self.clock, delay_ms)
        self._request = request
        log.info("registered", node=self.node_id, epoch=self.broker_epoch)
        self._heartbeats = asyncio.get_running_loop().create_task(self._live())

    def _not_registered(self, error: KafkaError) -> KafkaError:
        message = (
            f"node.id {self.node_id} of cluster {self.identity.cluster_id} could not register with the controllers: "
            f"{error.code.name}: {error.message}"
        )
        return KafkaError(error.code, message)

    async def caught_up(self) -> None:
        """Returns once the image has all records up to this broker's registration."""
        await asyncio.shield(self._caught_up)

    async def unfence(self) -> None:
        """Returns once the controller has unfenced this broker, which may then lead."""
        self._ready = True
        self._hurry()
        await asyncio.shield(self._unfenced)

    async def leave(self) -> None:
        """Hands over the partitions that this broker leads, if other brokers can lead them; then the controllers fence
        this broker. Gives up if they don't answer for a session timeout, because they then fence it without a request.
        Without controlled.shutdown.enable, only stops the heartbeats."""
        if self._heartbeats is None:
            return
        if self.state is NodeState.RUNNING and self.incarnation.hands_over and not self._heartbeats.done():
            self.state = NodeState.PENDING_CONTROLLED_SHUTDOWN
            self._answered_ms = begun_ms = self.clock.monotonic_ms()
            self._hurry()
            while not self._may_shut_down.done() and (now_ms := self.clock.monotonic_ms()) < begun_ms + LEAVE_MS:
                deadline_ms = min(self._answered_ms + self._times.session_ms, begun_ms + LEAVE_MS)
                if now_ms >= deadline_ms:
                    log.warning(
                        "no controller completed this broker's controlled shutdown",
                        reason=self._problem or "none answered",
                    )
                    break
                await done_by(self.clock, deadline_ms, self._may_shut_down)
        self.state = NodeState.SHUTTING_DOWN
        self._placements.stop()
        self._heartbeats.cancel()
        await asyncio.wait([self._heartbeats])

    def placed(self, name: TopicPartition, log_dir: str) -> None:
        """Reports the log directory of a new replica for which the controllers have chosen none."""
        directory_id = self.directory_ids.get(log_dir)
        if directory_id is not None:
            self._placements.note(name, directory_id)

    async def moved(self, name: TopicPartition, log_dir: str) -> None:
        """Reports the new log directory of a replica, until a controller accepts it. Otherwise controllers would
        consider the replica lost if its old directory fails, and alive if its new directory fails.
        """
        self.placed(name, log_dir)

    async def directory_failed(self, path: str) -> None:
        """Reports a failed log directory with the next heartbeat, which is sent at once. Stops the broker if no
        controller accepts that within log.dir.failure.timeout.ms, because the controllers would believe that it
        still serves those partitions.
        """
        directory_id = self.directory_ids[path]
        notified = self._unnotified[directory_id] = asyncio.get_running_loop().create_future()
        self._offline.append(directory_id)
        self._hurry()
        within_ms = self._times.directory_failure_ms
        if not await done_by(self.clock, self.clock.monotonic_ms() + within_ms, notified):
            message = (
                f"{path} has failed, and no controller accepted the report within "
                f"log.dir.failure.timeout.ms={within_ms}"
            )
            self._on_failure(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message))

    def _hurry(self) -> None:
        """Sends the next heartbeat at once."""
        if not self._hurried.done():
            self._hurried.set_result(None)

    async def _live(self) -> None:
        try:
            await self._send_heartbeats()
        except Exception as error:  # a bug: the broker would continue to serve although it is soon fenced
            log.error("heartbeats are no longer sent", exc_info=error)
            self._on_failure(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"))

    async def _send_heartbeats(self) -> None:
        failures = 0
        while True:
            self._hurried = asyncio.get_running_loop().create_future()
            leaving = self.state is NodeState.PENDING_CONTROLLED_SHUTDOWN
            notifying = [*self._unnotified]
            try:
                await self._refresh_registration()
                response = await self._heartbeat(want_fence=not self._ready, want_shut_down=leaving)
            except KafkaError as error:
                failures += 1
                self._log_problem("no controller accepted a heartbeat", error)
                await pause(self.clock, self._backoff.delay_ms(failures, self._draw()))
                continue
            failures, self._problem, self._answered_ms = 0, "", self.clock.monotonic_ms()
            for directory_id in notifying:
                self._unnotified.pop(directory_id).set_result(None)
            delay_ms = ANSWERED[self.state](self, response)
            await done_by(self.clock, self.clock.monotonic_ms() + delay_ms, self._hurried)

    async def _refresh_registration(self) -> None:
        """Registers again as the same incarnation in two cases: the metadata have no log directories of this broker
        although their version now supports them (BrokerRegistrationTracker), or another incarnation is registered in
        its place, because a request of an earlier process arrived late. Raises KafkaError.
        """
        registration = self._image.brokers.get(self.node_id)
        if self._request is None or registration is None or self.state is NodeState.PENDING_CONTROLLED_SHUTDOWN:
            return
        if registration.epoch > self.broker_epoch:
            epoch = await self._take_back(self._request)
            log.warning("registered again, after another incarnation of this broker", node=self.node_id, epoch=epoch)
        elif registration.epoch < self.broker_epoch or registration.log_dirs:
            return
        elif self._image.features.get(METADATA_VERSION, 0) >= FIRST_WITH_DIRECTORIES:
            await self._submit_registration(self._request)
            log.info("registered again, with log directories", node=self.node_id, epoch=self.broker_epoch)

    async def _take_back(self, request: BrokerRegistrationRequest) -> int:
        """Registers again, and returns the new broker epoch. Raises KafkaError while the controller keeps the other
        incarnation, which may be alive; stops the broker if it still does so after
        initial.broker.registration.timeout.ms.
        """
        now_ms = self.clock.monotonic_ms()
        if self._replaced_ms is None:
            self._replaced_ms = now_ms
        try:
            await self._submit_registration(request)
        except KafkaError as error:
            if now_ms - self._replaced_ms >= self._times.registration_ms:
                self._on_failure(self._not_registered(error))
                self._replaced_ms = now_ms
            raise
        self._replaced_ms = None
        return self.broker_epoch

    # Handle the answer to a heartbeat, and return the delay of the next in milliseconds.

    def _answered_starting(self, response: BrokerHeartbeatResponse) -> int:
        if response.is_caught_up:
            self.state = NodeState.RECOVERY
            self._caught_up.set_result(None)
        return SOON_MS

    def _answered_recovering(self, response: BrokerHeartbeatResponse) -> int:
        if not response.is_fenced:
            self.state = NodeState.RUNNING
            log.info("unfenced", node=self.node_id)
            self._unfenced.set_result(None)
        return self._interval_ms

    def _answered_running(self, response: BrokerHeartbeatResponse) -> int:
        return self._interval_ms

    def _answered_leaving(self, response: BrokerHeartbeatResponse) -> int:
        if response.should_shut_down and not self._may_shut_down.done():
            self._may_shut_down.set_result(None)
        self._leaving += 1
        return LEAVING.delay_ms(self._leaving, self._draw())

    @property
    def _interval_ms(self) -> int:
        return max(self._times.heartbeat_ms, SOON_MS)

    def _log_problem(self, event: str, error: KafkaError) -> None:
        """Logs a problem once, not at every attempt."""
        problem = f"{error.code.name}: {error.message}"
        if problem != self._problem:
            self._problem = problem
            log.warning(event, node=self.node_id, reason=problem)


ANSWERED: Final[dict[NodeState, Callable[[RemoteNode, BrokerHeartbeatResponse], int]]] = {
    NodeState.STARTING: RemoteNode._answered_starting,
    NodeState.RECOVERY: RemoteNode._answered_recovering,
    NodeState.RUNNING: RemoteNode._answered_running,
    NodeState.PENDING_CONTROLLED_SHUTDOWN: RemoteNode._answered_leaving,
    NodeState.SHUTTING_DOWN: RemoteNode._answered_leaving,
}
