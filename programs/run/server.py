"""The composition root: builds a broker, serves until a signal to stop, and shuts it down in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker import logging
from broker.clock import Clock, SystemClock
from broker.config import BrokerConfig
from broker.config.layers import Layers
from broker.config.listeners import ListenerAddress
from broker.config.live import LiveConfig
from broker.disks.open_logs import open_logs
from broker.dispatch.broker import Broker
from broker.dispatch.dispatcher import Dispatcher
from broker.dispatch.host import Forwarding, Host
from broker.dispatch.slow_requests import SlowRequests
from broker.handlers import APIS
from broker.metadata.opening import Metadata, MetadataSettings, open_metadata
from broker.network import descriptors
from broker.network.listener import Listener
from broker.replica.assignments import Assignments
from broker.replica.disk_failures import DiskFailures
from broker.workers import Workers
from cli.exits import FAILED
from coordinator.cluster.brokers.info import Endpoint
from programs.run.housekeeping import Housekeeping
from programs.run.limiting import Limiting
from programs.run.listening import Bound, Listening, bind_all, listen_all, metrics_endpoint
from programs.run.metadata_settings import endpoints, metadata_settings
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from storage.disk import Disk, OsDisk
from storage.logs import Logs
from storage.open_files import OpenFiles

if TYPE_CHECKING:
    from broker.metadata import quorum_node
    from broker.metadata.joining import MetadataEnvironment
    from broker.metadata.quorum_node import QuorumNode
    from broker.metadata.replicating import ReplicaPart
    from broker.metrics.endpoint import MetricsEndpoint
    from broker.replica.alter_partition import AlterPartition
    from programs.run import authorizing, controller, controlling, joining
    from programs.run.controlling import BrokerControl
    from programs.run.joining import Replication
    from programs.run.zookeeper import Zookeeper
else:  # a node that is alone needs none of it
    authorizing = lazy("programs.run.authorizing")
    controller = lazy("programs.run.controller")
    controlling = lazy("programs.run.controlling")
    joining = lazy("programs.run.joining")
    quorum_node = lazy("broker.metadata.quorum_node")

METADATA_THREADS = 3
"""One for flushes of the metadata log, one for writing a snapshot, one for reading fetched parts of snapshots."""

BACKGROUND_THREADS = 2
"""Threads for flushes, checkpoints and deletions of logs, which wait for a disk or keep it busy."""

logger = logging.get_logger(__name__)


class Server:
    """The lifecycle of a broker: `start`, then clients connect, then `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        stop: asyncio.Event,
        failed: Mapping[str, Exception] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`failed` has the errors of log directories that have already failed. The default clock is the machine's."""
        self.config = config
        self._failed_dirs = failed or {}
        shares = descriptors.divide()
        self.exit_code = 0
        self.advertised: list[ListenerAddress] = []
        """The advertised listeners, once they are bound."""
        self._stop = stop
        self._clock: Clock = SystemClock() if clock is None else clock
        open_files = OpenFiles(files=shares.files, mappings=shares.mappings)
        self.control = self._controlled(open_files)
        self._disk: Disk = OsDisk(open_files) if self.control is None else self.control.disk
        self._metadata_worker = Workers(METADATA_THREADS, "metadata")
        self._workers = Workers(BACKGROUND_THREADS, "background")
        self._live_config = LiveConfig(Layers(config))
        self._listening = Listening(self._clock, shares.connections)
        self._controllers: list[Bound] = []
        """The sockets of the controller in this process."""
        self._controller: Host | None = None
        """The host that answers on them."""
        self._voter: ReplicaPart | None = None
        """The voter of a node with both roles that other nodes can reach."""
        self._forwarding: Forwarding | None = None
        self._alter: AlterPartition | None = None
        self._replication: Replication | None = None
        self.metrics: MetricsEndpoint | None = None
        self._zookeeper: Zookeeper | None = None
        self._cluster_id: str | None = None
        """The id of the cluster in ZooKeeper."""

    async def start(self) -> None:
        """Binds sockets first, so that a port in use is found early, and serves them last. In between, as Apache Kafka
        does (BrokerServer.startup), it recovers logs, registers the broker, opens the partitions that the metadata
        assigns to it, and only then unfences the broker, which may make it a leader.

        A broker of a cluster refuses connections until it is about to be unfenced: other brokers lead its partitions
        until then, and a client that waits here wouldn't look for them. A node that is the only voter lets its clients
        wait, because without it no other broker can be elected."""
        bound = bind_all(self.config.bound_listeners, self.config)
        self._controllers = bind_all(self.config.bound_controllers, self.config)
        listen_all(self._controllers, self.config)
        self._is_listening = not self.config.has_peers
        if self._is_listening:
            listen_all(bound, self.config)
        self.metrics = await metrics_endpoint(self.config, self._clock, self._disk, is_broker=True)
        self.advertised = [listener for _, listener in bound]
        await self._open_zookeeper()
        if self.config.has_remote_controllers:
            await self._join()
        elif self._controllers:
            await self._combine(bound)
        else:
            self.metadata = self._open_metadata()
            self.logs = self._open_logs()
        if self._zookeeper is not None:
            await self._zookeeper.claim(self.metadata.image.cluster_id)
        self.broker = Broker(
            self._live_config, self._clock, self.metadata, self.logs, APIS, self._quorum, self._forwarding
        )
        if self._controller is not None:
            self._controller.interceptors.times = self.broker.interceptors.times  # one process, one table, as in Kafka
            self.broker.process_secret = self._controller.process_secret  # the controller's listeners are already open
        self._authorize()
        await self._register()
        self.assignments = self._assignments(self.broker)
        self.assignments.take_over()
        self._replicate()
        for coordinator in self.broker.coordinators.values():
            coordinator.start()
        self.broker.share_groups.start()
        if not self._is_listening:
            listen_all(bound, self.config)  # before clients learn that this broker leads
        await (
            self.metadata.node.unfence()
        )  # it may lead from here on: its partitions are open and its coordinators started
        await self.broker.new_logs.changes.over()  # clients find the leaders that this has elected
        failures = self._disk_failures()
        self.housekeeping = Housekeeping(self.broker, self._workers, self.listeners, failures)
        self.housekeeping.start()
        SlowRequests(self.broker).follow()
        Limiting(self.broker, self._listening)
        self._serve_clients(bound)
        if self._zookeeper is not None:
            self._zookeeper.begin(self.broker)
        self._serve_metrics()
        if self.control is not None:
            await self.control.serve(
                self.broker, self.housekeeping.cleaner, self._workers, self.listeners, self.advertised
            )

    def _controlled(self, open_files: OpenFiles) -> BrokerControl | None:
        """Returns the control of a broker for tests; None for any other broker."""
        if self.config.control_address is None:
            return None
        return controlling.BrokerControl(self.config, open_files)

    def _serve_clients(self, bound: list[Bound]) -> None:
        dispatcher = Dispatcher(self.broker)
        if self.control is None:
            self._listening.open(bound, dispatcher)
        else:
            self._listening.open(bound, self.control.interpose(self.broker, dispatcher))

    @property
    def announced(self) -> str:
        """The lines before the ready line: the control server's address, if there is one."""
        return "" if self.control is None else f"control {self.control.address}\n"

    def _authorize(self) -> None:
        if self.config.authorizer_class_name:
            self.broker.fetches.authorizer = authorizing.authorize(self.broker)

    async def _open_zookeeper(self) -> None:
        """Connects to ZooKeeper if it is configured. A new cluster takes the cluster id in ZooKeeper."""
        if not self.config.zookeeper_connect:
            return
        try:
            from programs.run.zookeeper import Zookeeper  # few brokers need it
        except ModuleNotFoundError as error:
            message = f"zookeeper.connect needs {error.name}: pip install 'odradek[zookeeper]'"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message) from error
        zookeeper = Zookeeper(self.config, self._endpoints, self._clock)
        self._cluster_id = await zookeeper.open()
        self._zookeeper = zookeeper

    def _serve_metrics(self) -> None:
        if self.metrics is not None:
            self.metrics.attach_broker(
                self.broker,
                self.listeners,
                self.metadata.cluster,
                self.housekeeping.cleaner,
                self._replication and self._replication.isr_manager,
                self._replication and self._replication.fetchers,
            )

    def _replicate(self) -> None:
        """Starts replication, if there may be other brokers."""
        if self._alter is not None:
            self._replication = joining.replicate(self.broker, self._alter)

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

    async def _combine(self, bound: list[Bound]) -> None:
        """Takes part in the quorum, registers the broker with the active controller, and opens the logs, which may take
        long, while the controller serves other nodes and heartbeats continue."""
        settings, environment = self._settings(), self._environment()
        part = self._voter = joining.open_voter(self.config, settings, environment)
        dispatcher = controller.controller_dispatcher(
            self._live_config, self._clock, part.cluster, lambda: part.replica
        )
        self._listening.open(self._controllers, dispatcher)
        self._controller = dispatcher.host
        self._is_listening = part.is_only_voter
        if self._is_listening:
            listen_all(bound, self.config)
        part.replica.start()
        self.metadata, self._forwarding, self._alter = await joining.combine_with(
            part, self.config, settings, self._endpoints, self._failed_dirs, environment
        )
        self.logs = await self._workers.call(self._open_logs)

    def _environment(self) -> MetadataEnvironment:
        return joining.environment_of(
            self._disk, self._clock, self._metadata_worker, self._metadata_failed, self._subscriber_failed
        )

    def _quorum(self) -> QuorumNode:
        if self._voter is not None:
            return self._voter.replica
        log = self.metadata.led_log
        assert log is not None
        return quorum_node.lone_quorum(self._settings(), self.metadata.node.identity, log, self._clock)

    async def _join(self) -> None:
        """Joins the controllers in other processes and opens the logs, while heartbeats continue."""
        self.metadata, self._forwarding, self._alter = await joining.join_quorum(
            self.config, self._settings(), self._endpoints, self._failed_dirs, self._environment()
        )
        self.logs = await self._workers.call(self._open_logs)

    async def _register(self) -> None:
        """Registers this broker, without the log directories that have failed."""
        node = self.metadata.node
        offline = [log_dir.path for log_dir in self.logs.dirs.values() if not log_dir.online]
        if not self.config.has_peers:
            await node.register(self._endpoints, offline)
            return
        for path in offline:  # already registered, without the directories of `_failed_dirs`
            if path not in self._failed_dirs:
                await node.directory_failed(path)

    @property
    def listeners(self) -> list[Listener]:
        """The open listeners."""
        return self._listening.listeners

    @property
    def _endpoints(self) -> list[Endpoint]:
        """The endpoints for clients and other brokers."""
        return endpoints(self.advertised)

    def _open_logs(self) -> Logs:
        if self.metrics is not None:
            self.metrics.recovers()
        now_ms = self._clock.now_ms()
        return open_logs(self.config, self.metadata.image, self._disk, now_ms, self._failed_dirs)

    def _settings(self) -> MetadataSettings:
        controllers = [listener for _, listener in self._controllers]
        settings = metadata_settings(self.config, self._live_config, self.advertised, controllers)
        return settings._replace(cluster_id=self._cluster_id)

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
        logger.error("the cluster's metadata failed on this broker; stopping", reason=str(error))
        self._failed()

    def _subscriber_failed(self, error: Exception) -> None:
        logger.error("a metadata change was not applied", exc_info=error)

    def _failed(self) -> None:
        self.exit_code = FAILED
        self._stop.set()

    async def stop(self) -> None:
        """Hands leadership over while followers can still fetch, stops accepting connections, sends the pending
        answers, closes the logs, and writes the clean shutdown markers last."""
        if self.control is not None:
            self.control.close()
        if self._voter is not None:
            await self.metadata.leave()  # while the other voters can reach this node, and elect another leader
        elif self._replication is not None:
            await self.metadata.node.leave()
        if self._zookeeper is not None:
            await self._zookeeper.close()
        self._listening.close()
        self.broker.new_logs.stop()
        self.broker.share_groups.stop()
        for coordinator in self.broker.coordinators.values():
            coordinator.stop()
        if self.broker.has_anywhere:
            self.broker.anywhere.stop()
        await self._listening.drained()
        if self.broker.has_telemetry:  # after the last clients have pushed their metrics
            self.broker.telemetry.close()
        await self.broker.record_work.close()
        self.housekeeping.stop()
        self.broker.moves.stop()
        if self._replication is not None:
            await self._replication.stop()
        self.broker.disk_work.close()
        self._workers.close()
        try:
            await self.metadata.leave()
            self._metadata_worker.close()  # a running flush must not meet a closed log
            self.metadata.close()
        except KafkaError as error:
            logger.error("the metadata log was not closed cleanly", reason=str(error))
        self._metadata_worker.close()
        self.logs.close(self._clock.now_ms(), self.metadata.node.broker_epoch)
        if self.metrics is not None:
            self.metrics.close()
        logger.info("stopped")
