"""The composition root: puts a broker together, serves until it is told to stop, takes it apart again."""

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
from broker.metadata.log import log_config
from broker.metadata.opening import Metadata, MetadataSettings, open_metadata
from broker.metadata.snapshots import SnapshotRules
from broker.network import descriptors
from broker.network.admission import Admission
from broker.network.connection import ServerConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.endpoints import address, advertised, bind
from broker.network.listener import Listener
from broker.network.request_memory import RequestMemory
from broker.network.unread import UnreadAnswers
from broker.process.housekeeping import Housekeeping
from broker.replica.assignments import Assignments
from broker.requests.api import Apis
from broker.requests.broker import Broker
from broker.requests.dispatch import Dispatcher
from broker.workers import Workers
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.formatting import WrongOwner
from coordinator.cluster.options import ClusterOptions
from protocol.errors import KafkaError
from storage.checkpoint import CorruptCheckpoint
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.logs import Logs
from storage.open_files import OpenFiles

if TYPE_CHECKING:
    from broker.replication.replica_fetchers import ReplicaFetchers

CANNOT_START = 1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

OBJECTS_PER_COLLECTION = 10_000
"""New objects after which garbage is looked for. A turn of the event loop with a hundred requests has some thousands of
them: Python's 700 would look at requests at work over and over, and keep them for old."""

CLOSE_WITHIN_S = 5.0
"""How long answers may take to go out once the broker is told to stop; what clients did not get, they ask for again."""

METADATA_THREADS = 2
"""Flushes of the metadata log, one at a time, and beside them a snapshot."""

BACKGROUND_THREADS = 2
"""Flushes, checkpoints and deletions of the logs: what waits for a disk, or holds one busy."""

CONTROLLER_PORT = 9093
"""What the metadata names as the controller's port: Kafka wants one there, nobody listens on it."""

log = logging.get_logger("broker.process.server")


def run(config: BrokerConfig) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code: 1, with one line logged, where it cannot start."""
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
    """The log directories and the metadata's, each once."""
    return list(dict.fromkeys((*config.data_dirs, config.metadata_dir)))


def lock_directories(config: BrokerConfig, stack: contextlib.ExitStack) -> dict[str, Exception]:
    """Keeps other brokers out until the stack is closed; the log directories that could not be used for that. The
    metadata's must be: raises OSError. Raises DirectoryInUse for any."""
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
    stop = asyncio.Event()
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = Server(config, stop, failed)
    if not await started(server, stop):
        return server.exit_code
    sys.stdout.write(f"ready {address(server.told[0])}\n")
    sys.stdout.flush()
    from broker.process.warming_up import warm_up  # a start has no use for it

    warming_up = asyncio.create_task(warm_up())
    await stop.wait()
    warming_up.cancel()
    await server.stop()
    return server.exit_code


async def started(server: Server, stop: asyncio.Event) -> bool:
    """False where the broker was told to stop first: one that waits for its controllers may take long to start."""
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
        """`failed` are log directories that are no use already, and why."""
        self.config = config
        self._failed_dirs = failed or {}
        shares = descriptors.divide()
        self._max_connections = shares.connections
        self.exit_code = 0
        self.told: list[ListenerAddress] = []
        self._stop = stop
        self._clock = SystemClock()
        self._disk = OsDisk(OpenFiles(files=shares.files, mappings=shares.mappings))
        self._metadata_worker = Workers(METADATA_THREADS, "metadata")
        self._workers = Workers(BACKGROUND_THREADS, "background")
        self._live_config = LiveConfig(Layers(config))
        self.listeners: list[Listener] = []
        self._sockets: list[asyncio.Server] = []
        self.fetchers: ReplicaFetchers | None = None

    async def start(self) -> None:
        """Sockets are bound first, so that a port in use costs nothing; they are served last. In between, as by Apache
        Kafka (BrokerServer.startup): logs recovered, the broker registered, its partitions opened as the metadata has
        them, and only then the broker unfenced, by which it comes to lead."""
        bound = [bind(listener, self.config) for listener in self.config.bound_listeners]
        self.told = [advertised(listener, self.config.advertised) for _, listener in bound]
        apis = await self._join() if self.config.has_remote_controllers else self._lead()
        self.broker = Broker(self._live_config, self._clock, self.metadata, self.logs, apis)
        await self._register()
        self.assignments = self._assignments(self.broker)
        self.assignments.take_over()
        self._replicate()
        for coordinator in self.broker.coordinators.values():
            coordinator.start()
        self.broker.share_groups.start()
        await self.metadata.node.unfence()  # who may lead from here on has its partitions open, and hosts coordinators
        failures = self._disk_failures()
        self.housekeeping = Housekeeping(self.broker, self._workers, self.listeners, failures)
        self.housekeeping.start()
        dispatcher = Dispatcher(self.broker, FAST)
        lines = ConnectionLines(self.broker.faults)
        admission = Admission(lambda: self._live_config.effective, self._clock, lines, self._max_connections)
        memory = RequestMemory(self.config.request_memory_bytes, self.config.request_memory_bytes_per_ip)
        unread = UnreadAnswers(self.config.odradek_unread_answers_max_bytes, lines)
        for (sock, _), told in zip(bound, self.told, strict=True):
            listener = Listener(
                told.name,
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
        gc.freeze()  # what there is now stays: no collection has to look at it
        gc.set_threshold(OBJECTS_PER_COLLECTION)
        gc.enable()

    def _replicate(self) -> None:
        """Where others may lead: replicas follow them."""
        if self.config.has_remote_controllers:
            from broker.process.joining import replicate

            self.fetchers = replicate(self.broker)

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
        """The metadata, and the logs, of a node that is its own controller."""
        self.metadata = self._open_metadata()
        self.logs = self._open_logs()
        return APIS

    async def _join(self) -> Apis:
        """The same under controllers elsewhere: heartbeats go on while logs are recovered."""
        from broker.process.joining import join_quorum  # all that a node needs none of that is its own controller

        self.metadata, apis = await join_quorum(
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
        """Have the controllers know of this broker, and of its log directories that are no use."""
        node = self.metadata.node
        offline = [log_dir.path for log_dir in self.logs.dirs.values() if not log_dir.online]
        if not self.config.has_remote_controllers:
            await node.register(self._endpoints, offline)
            return
        for path in offline:  # it is registered already, without those that had failed by then
            if path not in self._failed_dirs:
                await node.directory_failed(path)

    @property
    def _endpoints(self) -> list[Endpoint]:
        """Where clients and other brokers are told to connect."""
        return [Endpoint(one.name, one.host, one.port) for one in self.told]

    def _open_logs(self) -> Logs:
        now_ms = self._clock.now_ms()
        return open_logs(self.config, self.metadata.image, self._disk, now_ms, self._failed_dirs)

    def _settings(self) -> MetadataSettings:
        return MetadataSettings(
            log_dirs=tuple(self.config.data_dirs),
            options=cluster_options(self.config, self.told),
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
        """No new connections, answers out, logs closed, and the marker that says so written last."""
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
        if self.fetchers is not None:
            self.fetchers.stop()
        self.broker.disk_work.close()
        self._workers.close()
        try:
            await self.metadata.leave()
            self._metadata_worker.close()  # a flush that has begun is not to meet a closed log
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
    """A connection that the listener has just got, as uvloop takes it."""
    return cast(asyncio.BufferedProtocol, ServerConnection(listener))


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """How the metadata log's segments roll."""
    segment_bytes = config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes
    return log_config(segment_bytes, config.metadata_log_segment_ms)


def snapshot_rules(config: BrokerConfig) -> SnapshotRules:
    """When the metadata's snapshots are written, and how long they stay."""
    return SnapshotRules(
        max_record_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        max_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
    )


def cluster_options(config: BrokerConfig, told: list[ListenerAddress]) -> ClusterOptions:
    """What cluster metadata needs of the configuration."""
    return ClusterOptions(
        node_id=config.node_id,
        listeners=tuple(Endpoint(one.name, one.host, one.port) for one in told),
        controller_listener=Endpoint("CONTROLLER", "127.0.0.1", CONTROLLER_PORT),
        rack=config.broker_rack,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        min_insync_replicas=config.min_insync_replicas,
        delete_topic_enable=config.delete_topic_enable,
        clamp_replication_factor=config.odradek_profile == "dev",
        static_configs=config.explicit,
    )
