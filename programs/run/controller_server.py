"""The process of a controller without a broker: builds it, serves until a signal to stop, and shuts it down in order.

It is a voter of the metadata quorum, and decides for the cluster while it leads. It has no topic logs, coordinators or
clients. Source: kafka.server.ControllerServer.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import TYPE_CHECKING

from broker import logging
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.config.layers import Layers
from broker.config.listeners import ListenerAddress
from broker.config.live import LiveConfig
from broker.dispatch.host import Host
from broker.dispatch.slow_requests import SlowRequests
from broker.metadata.joining import MetadataEnvironment
from broker.metadata.opening import MetadataSettings
from broker.metadata.replicating import ReplicaPart, open_replica
from broker.network import descriptors
from broker.network.listener import Listener
from broker.workers import Workers
from cli.exits import FAILED
from coordinator.cluster.changes import ConfigChanged, Delta
from coordinator.cluster.configs.resource import DEFAULT_BROKER, ConfigResource, ResourceType
from programs.run.controller import controller_dispatcher
from programs.run.jobs import COMMON_JOBS, Keeper
from programs.run.listening import Listening, bind_all, listen_all, metrics_endpoint
from programs.run.metadata_settings import metadata_settings
from programs.run.quorum_settings import quorum_of
from protocol.errors import KafkaError
from storage.disk import OsDisk
from storage.failure import LogDirFailure, LogDirFull
from storage.open_files import OpenFiles

if TYPE_CHECKING:
    from broker.metrics.endpoint import MetricsEndpoint
METADATA_THREADS = 3
"""One for flushes of the metadata log, one for writing a snapshot, one for reading fetched parts of snapshots."""

BACKGROUND_THREADS = 1

logger = logging.get_logger(__name__)


class ControllerServer:
    """The lifecycle of a controller: `start`, then brokers connect, then `stop`."""

    def __init__(self, config: BrokerConfig, stop: asyncio.Event) -> None:
        self.config = config
        shares = descriptors.divide()
        self.exit_code = 0
        self.advertised: list[ListenerAddress] = []
        """The advertised listeners, once they are bound."""
        self.announced = ""  # it has no control server
        self._stop = stop
        self._clock = SystemClock()
        self._disk = OsDisk(OpenFiles(files=shares.files, mappings=shares.mappings))
        self._metadata_worker = Workers(METADATA_THREADS, "metadata")
        self._workers = Workers(BACKGROUND_THREADS, "background")
        self._live_config = LiveConfig(Layers(config))
        self._loop = asyncio.get_running_loop()
        self._listening = Listening(self._clock, shares.connections)
        self.metrics: MetricsEndpoint | None = None

    async def start(self) -> None:
        """Binds sockets first, loads the metadata, serves, and then takes part in the quorum. Raises WrongOwner,
        CorruptCheckpoint, KafkaError, OSError."""
        bound = bind_all(self.config.bound_controllers, self.config)
        listen_all(bound, self.config)
        self.metrics = await metrics_endpoint(self.config, self._clock, self._disk, is_broker=False)
        self.advertised = [listener for _, listener in bound]
        self.part = self._open()
        self.part.log.report_failures(self._disk_failed)
        dispatcher = controller_dispatcher(self._live_config, self._clock, self.part.cluster, lambda: self.part.replica)
        self._configure()
        self.part.cluster.loader.subscribe(self._changed)
        self.keeper = Keeper(dispatcher.host, self._workers, self._listening.listeners)
        self.keeper.begin(COMMON_JOBS)
        SlowRequests(dispatcher.host).follow()
        self._listening.open(bound, dispatcher)
        self._serve_metrics(dispatcher.host)
        self.part.replica.start()

    def _serve_metrics(self, host: Host) -> None:
        if self.metrics is not None:
            self.metrics.attach_controller(host, self.listeners, self.part.cluster)

    def _settings(self) -> MetadataSettings:
        return metadata_settings(self.config, self._live_config, (), self.advertised)

    def _open(self) -> ReplicaPart:
        environment = MetadataEnvironment(
            self._disk,
            self._clock,
            self._metadata_worker,
            os.urandom,
            random.random,
            on_failure=self._failed,
            on_fault=lambda error: logger.error("a metadata change was not applied", exc_info=error),
        )
        return open_replica(self._settings(), quorum_of(self.config), environment)

    def _changed(self, delta: Delta) -> None:
        if any(
            type(change) is ConfigChanged and change.resource.type is ResourceType.BROKER for change in delta.changes
        ):
            self._configure()

    def _configure(self) -> None:
        """Applies this node's dynamic options and the cluster's defaults over the static options."""
        image, own = self.part.cluster.image, ConfigResource(ResourceType.BROKER, str(self.config.node_id))
        cluster, node = dict(image.configs(DEFAULT_BROKER)), dict(image.configs(own))
        self._live_config.layers = self._live_config.layers.changed(cluster=cluster, broker=node)

    @property
    def listeners(self) -> list[Listener]:
        """The open listeners."""
        return self._listening.listeners

    def _disk_failed(self, error: LogDirFailure | LogDirFull) -> None:
        """Handles a failure of the log's directory, from any thread. A full directory rejects records until it has
        room."""
        if isinstance(error, LogDirFull):
            logger.error("the metadata log's disk is full", reason=str(error))
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._failed, error)

    def _failed(self, error: KafkaError) -> None:
        logger.error("the cluster's metadata failed on this controller; stopping", reason=str(error))
        self.exit_code = FAILED
        self._stop.set()

    async def stop(self) -> None:
        """Resigns, stops accepting connections, sends the pending answers, and closes the log."""
        await self.part.cluster.stop()
        self._listening.close()
        await self._listening.drained()
        self.keeper.stop()
        self._workers.close()
        self._metadata_worker.close()  # a running flush must not meet a closed log
        try:
            self.part.cluster.close()
        except KafkaError as error:
            logger.error("the metadata log was not closed cleanly", reason=str(error))
        if self.metrics is not None:
            self.metrics.close()
        logger.info("stopped")
