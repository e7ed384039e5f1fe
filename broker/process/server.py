"""The composition root: builds a broker, serves until a signal to stop, and shuts it down in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import uvloop

from broker import logging
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.alter import broker_checker, check_client_metrics, group_checker, list_defaults
from broker.config.layers import Layers
from broker.config.listeners import ListenerAddress
from broker.config.live import LiveConfig
from broker.disks.failures import DiskFailures
from broker.disks.lock import DirectoryInUse, DirectoryLock
from broker.disks.open_logs import open_logs
from broker.fast import FAST
from broker.handlers import APIS
from broker.metadata.opening import Metadata, MetadataSettings, open_metadata
from broker.network import descriptors
from broker.network.admission import Admission
from broker.network.connection import ServerConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.endpoints import address, advertised, bind
from broker.network.listener import Listener
from broker.network.request_memory import RequestMemory
from broker.network.unread import UnreadAnswers
from broker.process.housekeeping import Housekeeping
from broker.process.metadata_settings import cluster_options, endpoints, metadata_log_config, snapshot_rules
from broker.replica.assignments import Assignments
from broker.requests.api import Apis
from broker.requests.broker import Broker
from broker.requests.dispatch import Dispatcher
from broker.workers import Workers
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.formatting import WrongOwner
from protocol.errors import KafkaError
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk
from storage.logs import Logs
from storage.open_files import OpenFiles

if TYPE_CHECKING:
    from broker.process.joining import Replication
    from broker.replica.alter_partition import AlterPartition

CANNOT_START = 1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

OBJECTS_PER_COLLECTION = 10_000
"""How many new objects start a garbage collection. A turn of the event loop with a hundred requests has some thousands
of them: Python's 700 would traverse the same requests over and over, and promote them to an older generation."""

CLOSE_WITHIN_S = 5.0
"""How long answers may take to go out once the broker stops; clients retry the requests that got none."""

METADATA_THREADS = 2
"""One for flushes of the metadata log, one for a snapshot beside them."""

BACKGROUND_THREADS = 2
"""For flushes, checkpoints and deletions of the logs: they wait for a disk, or keep it busy."""

log = logging.get_logger("broker.process.server")


def run(config: BrokerConfig) -> int:
    """Serves until SIGTERM or SIGINT, and returns the process's exit code: 1, with one line logged, where the broker
    cannot start."""
    logging.take_over_storage()
    try:
        with contextlib.ExitStack() as stack:
            failed = lock_directories(config, stack)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(serve(config, failed))
    except (DirectoryInUse, WrongOwner, CorruptCheckpoint, KafkaError, OSError) as error:
        log.error("cannot start", reason=str(error))
        return CANNOT_START


def directories(config: BrokerConfig) -> list[str]:
    """Returns the log directories and the metadata's, each once."""
    return list(dict.fromkeys((*config.data_dirs, config.metadata_dir)))


def lock_directories(config: BrokerConfig, stack: contextlib.ExitStack) -> dict[str, Exception]:
    """Locks the directories against other brokers until the stack is closed, and returns the errors of log directories
    that could not be locked. Raises OSError where the metadata's could not, DirectoryInUse for any that is locked."""
    failed: dict[str, Exception] = {}
    for directory in directories(config):
        try:
            stack.callback(DirectoryLock(directory).release)
        except OSError as error:
            if directory == config.metadata_dir:
                raise
            failed[directory] = error
    return failed


async def serve(config: BrokerConfig, failed: Mapping[str, Exception]) -> int:
    """Runs the broker until a signal or a failure stops it, and returns the exit code."""
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = Server(config, stop, failed)
    if not await started(server, stop):
        return server.exit_code
    sys.stdout.write(f"ready {address(server.advertised[0])}\n")
    sys.stdout.flush()
    from broker.process.warming_up import warm_up  # no start needs it

    warming_up = asyncio.create_task(warm_up())
    await stop.wait()
    warming_up.cancel()
    await server.stop()
    return server.exit_code


async def started(server: Server, stop: asyncio.Event) -> bool:
    """Starts the broker; returns False where it was stopped before that was done: one that waits for its controllers
    may take long to start."""
    starting, stopping = asyncio.ensure_future(server.start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting.done():
        await starting
        return True
    starting.cancel()
    await asyncio.wait([starting])
    return False


class Server:
    """One broker's life: `start`, then clients, then `stop`."""

    def __init__(
        self, config: BrokerConfig, stop: asyncio.Event, failed: Mapping[str, Exception] | None = None
    ) -> None:
        """`failed` are the errors of log directories that have failed already."""
        self.config = config
        self._failed_dirs = failed or {}
        shares = descriptors.divide()
        self._max_connections = shares.connections
        self.exit_code = 0
        self.advertised: list[ListenerAddress] = []
        """The listeners as clients are told of them, once they are bound."""
        self._stop = stop
        self._clock = SystemClock()
        self._disk = OsDisk(OpenFiles(files=shares.files, mappings=shares.mappings))
        self._metadata_worker = Workers(METADATA_THREADS, "metadata")
        self._workers = Workers(BACKGROUND_THREADS, "background")
        self._live_config = LiveConfig(Layers(config))
        self.listeners: list[Listener] = []
        self._sockets: list[asyncio.Server] = []
        self._alter: AlterPartition | None = None
        self._replication: Replication | None = None

    async def start(self) -> None:
        """Binds sockets first, so that a port in use costs nothing, and serves them last. In between, as Apache Kafka
        does (BrokerServer.startup): recovers logs, registers the broker, opens its partitions as the metadata assigns
        them, and only then has the broker unfenced, by which it comes to lead."""
        bound = [bind(listener, self.config) for listener in self.config.bound_listeners]
        self.advertised = [advertised(listener, self.config.advertised) for _, listener in bound]
        apis = await self._join() if self.config.has_remote_controllers else self._lead()
        self.broker = Broker(self._live_config, self._clock, self.metadata, self.logs, apis)
        await self._register()
        self.assignments = self._assignments(self.broker)
        self.assignments.take_over()
        self._replicate()
        for coordinator in self.broker.coordinators.values():
            coordinator.start()
        self.broker.share_groups.start()
        await self.metadata.node.unfence()  # it may lead from here on, with its partitions open and coordinators there
        failures = self._disk_failures()
        self.housekeeping = Housekeeping(self.broker, self._workers, self.listeners, failures)
        self.housekeeping.start()
        dispatcher = Dispatcher(self.broker, FAST)
        lines = ConnectionLines(self.broker.faults)
        admission = Admission(lambda: self._live_config.effective, self._clock, lines, self._max_connections)
        memory = RequestMemory(self.config.request_memory_bytes, self.config.request_memory_bytes_per_ip)
        unread = UnreadAnswers(self.config.odradek_unread_answers_max_bytes, lines)
        for (sock, _), listener_address in zip(bound, self.advertised, strict=True):
            listener = Listener(
                listener_address.name,
                dispatcher.answer,
                self.broker.interceptors.finish,
                clock=self._clock,
                max_request_bytes=self.config.socket_request_max_bytes,
                admission=admission,
                memory=memory,
                unread=unread,
                lines=lines,
            )
            await self._listen(sock, listener)
        gc.freeze()  # the objects of now stay: no collection has to traverse them
        gc.set_threshold(OBJECTS_PER_COLLECTION)
        gc.enable()

    def _replicate(self) -> None:
        """Where there are other brokers: replicas follow them, and are followed."""
        if self._alter is not None:
            from broker.process.joining import replicate

            self._replication = replicate(self.broker, self._alter)

    def _assignments(self, broker: Broker) -> Assignments:
        return Assignments(
            broker.replicas,
            self.logs,
            self.metadata.loader,
            self.metadata.node,
            self._clock,
            self._live_config,
            new_logs=broker.new_logs,
            moves=broker.moves,
        )

    def _disk_failures(self) -> DiskFailures:
        return DiskFailures(
            self.logs,
            self.metadata.metadata_log,
            self.metadata.node,
            close=self.assignments.log_lost,
            reopen=self.assignments.open_offline,
            stop=self._failed,
        )

    def _lead(self) -> Apis:
        """Opens metadata and logs of a node that is its own controller, and returns its table of APIs."""
        self.metadata = self._open_metadata()
        self.logs = self._open_logs()
        return APIS

    async def _join(self) -> Apis:
        """Joins controllers elsewhere and opens the logs, beside which heartbeats go on; returns the table of APIs."""
        from broker.process.joining import join_quorum  # a node that is its own controller needs none of it

        self.metadata, apis, self._alter = await join_quorum(
            self.config,
            self._settings(),
            self._endpoints,
            self._failed_dirs,
            disk=self._disk,
            clock=self._clock,
            worker=self._metadata_worker,
            on_failure=self._metadata_failed,
            on_fault=self._subscriber_failed,
        )
        self.logs = await self._workers.call(self._open_logs)
        return apis

    async def _register(self) -> None:
        """Registers this broker, without the log directories that have failed."""
        node = self.metadata.node
        offline = [log_dir.path for log_dir in self.logs.dirs.values() if not log_dir.online]
        if not self.config.has_remote_controllers:
            await node.register(self._endpoints, offline)
            return
        for path in offline:  # it is registered already, without those of `_failed_dirs`
            if path not in self._failed_dirs:
                await node.directory_failed(path)

    @property
    def _endpoints(self) -> list[Endpoint]:
        """The endpoints to which clients and other brokers connect."""
        return endpoints(self.advertised)

    def _open_logs(self) -> Logs:
        now_ms = self._clock.now_ms()
        return open_logs(self.config, self.metadata.image, self._disk, now_ms, self._failed_dirs)

    def _settings(self) -> MetadataSettings:
        return MetadataSettings(
            log_dirs=tuple(self.config.data_dirs),
            options=cluster_options(self.config, self.advertised),
            metadata_log_dir=self.config.metadata_dir,
            checkers={
                ResourceType.BROKER: broker_checker(lambda: self._live_config.layers),
                ResourceType.GROUP: group_checker(lambda: self._live_config.layers),
                ResourceType.CLIENT_METRICS: check_client_metrics,
            },
            snapshots=snapshot_rules(self.config),
            log_config=metadata_log_config(self.config),
            list_options={ResourceType.BROKER: list_defaults()},
        )

    def _open_metadata(self) -> Metadata:
        return open_metadata(
            self._settings(),
            disk=self._disk,
            clock=self._clock,
            worker=self._metadata_worker,
            random_bytes=os.urandom,
            on_failure=self._metadata_failed,
            on_fault=self._subscriber_failed,
        )

    def _metadata_failed(self, error: KafkaError) -> None:
        log.error("this broker's part in the cluster failed; stopping", reason=str(error))
        self._failed()

    def _subscriber_failed(self, error: Exception) -> None:
        log.error("a change of the cluster was not carried out", exc_info=error)

    def _failed(self) -> None:
        self.exit_code = CANNOT_START
        self._stop.set()

    async def _listen(self, sock: socket.socket, listener: Listener) -> None:
        server = await asyncio.get_running_loop().create_server(lambda: accepted(listener), sock=sock)
        self.listeners.append(listener)
        self._sockets.append(server)

    async def stop(self) -> None:
        """Hands leadership over while followers can still fetch, takes no more connections, sends the answers that are
        due, closes the logs, and writes the markers of a clean shutdown last."""
        if self._replication is not None:
            await self.metadata.node.leave()
        for server in self._sockets:
            server.close()
        for listener in self.listeners:
            listener.close_all()
        self.broker.new_logs.stop()
        self.broker.share_groups.stop()
        for coordinator in self.broker.coordinators.values():
            coordinator.stop()
        await self._drained()
        await self.broker.record_work.close()
        self.housekeeping.stop()
        self.broker.moves.stop()
        if self._replication is not None:
            await self._replication.stop()
        self.broker.disk_work.close()
        self._workers.close()
        try:
            await self.metadata.leave()
            self._metadata_worker.close()  # a flush that has begun must not meet a closed log
            self.metadata.close()
        except KafkaError as error:
            log.error("the metadata log was not closed in order", reason=str(error))
        self._metadata_worker.close()
        self.logs.close(self._clock.now_ms(), self.metadata.node.broker_epoch)
        log.info("stopped")

    async def _drained(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                for listener in self.listeners:
                    await listener.emptied()
        for listener in self.listeners:
            listener.abort_all()


def accepted(listener: Listener) -> asyncio.BufferedProtocol:
    """Returns the protocol of a connection that the listener has just accepted, typed as uvloop takes it."""
    return cast(asyncio.BufferedProtocol, ServerConnection(listener))
