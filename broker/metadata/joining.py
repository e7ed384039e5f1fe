"""Joins a cluster whose controllers are elsewhere: opens identity, log and image, and registers the broker.

metadata, controller = await join(settings, quorum, endpoints, failed, environment)  # registered, fenced, caught up
…                                                                                    # logs are opened, heartbeats go on
await metadata.node.unfence()
await metadata.leave()
metadata.close()
Source: the order of kafka.server.BrokerServer.startup.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple, Protocol

from broker.clock import Clock
from broker.metadata.controllers import Controllers
from broker.metadata.followed_log import FollowedLog
from broker.metadata.loading import load
from broker.metadata.log import Worker, open_metadata_log
from broker.metadata.observing import Observing, QuorumTimes, Threads
from broker.metadata.opening import ClusterPart, Metadata, MetadataSettings, QuorumView, begin_incarnation
from broker.metadata.remote_controller import RemoteController
from broker.metadata.remote_node import LifecycleTimes, RemoteNode
from broker.metadata.snapshots import Snapshots
from client.settings import Settings
from client.traffic import PeerTraffic
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.controller import Controller
from coordinator.cluster.formatting import Identity, check_formatted, claim, random_uuid
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader, raised
from coordinator.cluster.quorum_state import read_quorum_state
from coordinator.quorum.leadership import Leadership, Location
from coordinator.quorum.observer import FetchLimits, Observer
from coordinator.quorum.ready import RaftConfig
from protocol.errors import KafkaError
from protocol.types import Uuid
from storage.disk import Disk


class Quorum(NamedTuple):
    """The controllers' addresses, and the timeouts and limits of requests to them."""

    voters: dict[int, Location]
    bootstrap: tuple[Location, ...]
    listener: str
    """The name of the controllers' listener: the first in controller.listener.names."""
    times: QuorumTimes
    lifecycle: LifecycleTimes
    limits: FetchLimits
    raft: RaftConfig = RaftConfig()
    """The options of a voter."""
    peers: Settings = Settings()
    """The settings of connections to controllers."""


class Joined(NamedTuple):
    """A broker's part in the cluster, and its ways to the controllers."""

    metadata: Metadata
    controller: RemoteController
    """Forwards clients' requests to controllers in other processes."""
    isr_controller: Controller
    """Sends changes of in-sync replicas."""


class MetadataWorkers(Worker, Threads, Protocol):
    """Threads of the metadata log."""


class MetadataEnvironment(NamedTuple):
    """The disk, clock, threads and randomness of the machine, and the callbacks for failures."""

    disk: Disk
    clock: Clock
    worker: MetadataWorkers
    random_bytes: Callable[[int], bytes]
    draw: Callable[[], float]
    """Returns random numbers from 0 up to 1."""
    on_failure: Callable[[KafkaError], None]
    """Called if the quorum can no longer be followed, or heartbeats can no longer be sent."""
    on_fault: Callable[[Exception], None] = raised
    """Called with the errors of subscribers."""

    def new_uuid(self) -> Uuid:
        """Returns a random id."""
        return random_uuid(self.random_bytes)


class StoredMetadata(NamedTuple):
    """The metadata loaded from disk."""

    loader: MetadataLoader
    metadata_log: FollowedLog
    snapshots: Snapshots


async def join(
    settings: MetadataSettings,
    quorum: Quorum,
    endpoints: Sequence[Endpoint],
    failed: Container[str],
    environment: MetadataEnvironment,
) -> Joined:
    """Returns once the broker is registered and its image has all records up to its registration; if that fails, ends
    what it has started. Log directories in `failed` are not registered. Raises WrongOwner, CorruptCheckpoint,
    KafkaError, OSError.
    """
    identity = _claim(settings, environment)
    stored = _open(settings, identity, environment)
    leadership = Leadership(
        read_quorum_state(environment.disk, stored.metadata_log.directory), quorum.voters, quorum.bootstrap
    )
    if stored.loader.voters is not None:
        leadership.learn(stored.loader.voters, quorum.listener)
    # A connection answers requests in order, so requests that may take long have a connection of their own.
    traffic = PeerTraffic()
    settings_of_channels = (quorum.peers._replace(traffic=traffic), *[quorum.peers] * 3)
    channels = [Controllers(leadership, peers, environment.clock, environment.draw) for peers in settings_of_channels]
    for_fetches, for_heartbeats, for_requests, for_isrs = channels
    observing = _observing(settings, quorum, identity, stored, for_fetches, environment)
    lifecycle = RemoteController(for_heartbeats, quorum.lifecycle.session_ms)
    node = open_node(settings, quorum, identity, lifecycle, stored.loader.image, environment)

    async def stop() -> None:
        await observing.stop()
        for controllers in channels:
            await controllers.close()

    def view() -> QuorumView:
        return QuorumView(len(quorum.voters) if loader.voters is None else len(loader.voters.voters))

    controller = RemoteController(for_requests, quorum.lifecycle.session_ms)
    loader, log, snapshots = stored
    cluster = ClusterPart(
        loader.image, loader, log, controller, snapshots, stop, traffic, lambda: observing.current_as_of_ms, view=view
    )
    metadata = Metadata(cluster, node)
    observing.start()
    await register(metadata, node, endpoints, failed)
    return Joined(metadata, controller, RemoteController(for_isrs, quorum.lifecycle.session_ms))


async def register(metadata: Metadata, node: RemoteNode, endpoints: Sequence[Endpoint], failed: Container[str]) -> None:
    """Returns once the broker is registered and the image has all records up to its registration; if that fails, leaves
    the cluster. Log directories in `failed` are not registered. Raises KafkaError."""
    try:
        await node.register(endpoints, failed)
        await node.caught_up()
    except BaseException:
        await metadata.leave()
        raise


def _claim(settings: MetadataSettings, environment: MetadataEnvironment) -> Identity:
    options = settings.options
    check_formatted(settings.metadata_dir, environment.disk)
    return claim(
        settings.log_dirs,
        settings.metadata_dir,
        options.node_id,
        options.controller_listeners,
        settings.cluster_id,
        environment.new_uuid,
        disk=environment.disk,
        now_ms=environment.clock.now_ms(),
    )


def _open(settings: MetadataSettings, identity: Identity, environment: MetadataEnvironment) -> StoredMetadata:
    """Loads log and image as they were at the last stop: the image of the latest snapshot, until a leader reports which
    later records are committed.
    """
    disk, clock, worker = environment.disk, environment.clock, environment.worker
    log = open_metadata_log(
        FollowedLog, settings.metadata_dir, disk=disk, clock=clock, worker=worker, config=settings.log_config
    )
    loader = MetadataLoader(Image(identity.cluster_id), environment.on_fault)
    loader.image.controller_id = settings.options.node_id  # any live broker: all of them forward (KRaftMetadataCache)
    for snapshot_id in log.snapshots()[-1:]:
        log.begin_at(snapshot_id)
    load(loader, log, disk)
    log.listen(loader.committing)
    snapshots = Snapshots(loader, log, settings.snapshots, 0, disk=disk, clock=clock, worker=worker)
    log.listen(snapshots.committed)
    return StoredMetadata(loader, log, snapshots)


def _observing(
    settings: MetadataSettings,
    quorum: Quorum,
    identity: Identity,
    stored: StoredMetadata,
    controllers: Controllers,
    environment: MetadataEnvironment,
) -> Observing:
    directory_id = identity.directory_ids[settings.metadata_dir]
    node_id, leadership = settings.options.node_id, controllers.leadership
    return Observing(
        Observer(identity.cluster_id, node_id, directory_id, leadership, quorum.limits),
        stored.metadata_log,
        stored.loader,
        stored.snapshots,
        controllers,
        quorum.times,
        quorum.listener,
        environment.worker,
        environment.on_failure,
    )


def open_node(
    settings: MetadataSettings,
    quorum: Quorum,
    identity: Identity,
    controller: Controller,
    image: Image,
    environment: MetadataEnvironment,
) -> RemoteNode:
    """Returns this run of the broker, before its registration; `controller` gets its heartbeats."""
    return RemoteNode(
        begin_incarnation(settings, identity, environment.new_uuid, environment.disk),
        controller,
        image,
        clock=environment.clock,
        draw=environment.draw,
        times=quorum.lifecycle,
        on_failure=environment.on_failure,
    )
