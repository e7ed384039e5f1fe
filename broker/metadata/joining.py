"""Brings up what a broker has of a cluster whose controllers are elsewhere: identity, log, image, and its life there.

metadata, controller = await join(settings, quorum, endpoints, failed, outside)    # registered, fenced, caught up
…                                                                                  # logs are opened, heartbeats go on
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
from broker.metadata.node import previous_epoch
from broker.metadata.observing import Observing, Threads, Times
from broker.metadata.opening import Metadata, Settings
from broker.metadata.remote_controller import RemoteController
from broker.metadata.remote_node import LifeTimes, RemoteNode
from broker.metadata.snapshots import Snapshots
from broker.peers.settings import Settings as PeerSettings
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.formatting import Identity, WrongOwner, claim, random_uuid
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader, raised
from coordinator.cluster.quorum_state import read_quorum_state
from coordinator.quorum.leadership import Leadership, Location
from coordinator.quorum.observer import FetchLimits, Observer
from protocol.errors import KafkaError
from protocol.types import Uuid
from storage.disk import Disk
from storage.meta_properties import META_PROPERTIES, read_meta_properties


class Quorum(NamedTuple):
    """Where the controllers are, and how patient one is with them."""

    voters: dict[int, Location]
    bootstrap: tuple[Location, ...]
    listener: str
    """Their name for where they are spoken to: the first of controller.listener.names."""
    times: Times
    life: LifeTimes
    limits: FetchLimits


class Joined(NamedTuple):
    """A broker's part of the cluster, and who forwards what clients ask of its controllers."""

    metadata: Metadata
    controller: RemoteController


class MetadataWorkers(Worker, Threads, Protocol):
    """Threads of the metadata log."""


class Outside(NamedTuple):
    """What a broker has of its machine, and who is told what nobody asked for."""

    disk: Disk
    clock: Clock
    worker: MetadataWorkers
    random_bytes: Callable[[int], bytes]
    draw: Callable[[], float]
    """Random numbers from 0 up to 1."""
    on_failure: Callable[[KafkaError], None]
    """Told once that the quorum cannot be followed any more."""
    on_fault: Callable[[Exception], None] = raised
    """Told of subscribers that fail."""

    def new_uuid(self) -> Uuid:
        """A random id."""
        return random_uuid(self.random_bytes)


class OnDisk(NamedTuple):
    """The metadata as it is on disk."""

    loader: MetadataLoader
    metadata_log: FollowedLog
    snapshots: Snapshots


async def join(
    settings: Settings, quorum: Quorum, endpoints: Sequence[Endpoint], failed: Container[str], outside: Outside
) -> Joined:
    """Returns once the broker is registered and its image has all up to there; what was begun is ended where that
    fails. Log directories that have `failed` are not told. Raises WrongOwner, CorruptCheckpoint, KafkaError, OSError.
    """
    identity = _claim(settings, outside)
    on_disk = _open(settings, identity, outside)
    leadership = Leadership(
        read_quorum_state(outside.disk, on_disk.metadata_log.directory), quorum.voters, quorum.bootstrap
    )
    if on_disk.loader.voters is not None:
        leadership.learn(on_disk.loader.voters, quorum.listener)
    # Answers of a connection come in their order: what may take long has one of its own.
    fetching, living, asking = (Controllers(leadership, PeerSettings(), outside.clock, outside.draw) for _ in range(3))
    observing = _observing(settings, quorum, identity, on_disk, fetching, outside)
    node = _node(settings, quorum, identity, RemoteController(living, quorum.life.session_ms), on_disk, outside)

    async def stop() -> None:
        await observing.stop()
        for controllers in (fetching, living, asking):
            await controllers.close()

    controller = RemoteController(asking, quorum.life.session_ms)
    loader, log, snapshots = on_disk
    metadata = Metadata(loader.image, loader, log, controller, node, snapshots, stop)
    observing.start()
    try:
        await node.register(endpoints, failed)
        await node.caught_up()
    except BaseException:
        await metadata.leave()
        raise
    return Joined(metadata, controller)


def _claim(settings: Settings, outside: Outside) -> Identity:
    options = settings.options
    _must_be_formatted(settings.metadata_dir, outside.disk)
    return claim(
        settings.log_dirs,
        settings.metadata_dir,
        options.node_id,
        options.controller_listener,
        settings.cluster_id,
        outside.new_uuid,
        disk=outside.disk,
        now_ms=outside.clock.now_ms(),
    )


def _open(settings: Settings, identity: Identity, outside: Outside) -> OnDisk:
    """Log and image as the last stop left them: the image of the latest snapshot, until a leader says
    what is committed."""
    disk, clock, worker = outside.disk, outside.clock, outside.worker
    log = open_metadata_log(
        FollowedLog, settings.metadata_dir, disk=disk, clock=clock, worker=worker, config=settings.log_config
    )
    loader = MetadataLoader(Image(identity.cluster_id), outside.on_fault)
    loader.image.controller_id = settings.options.node_id  # any live broker: all of them forward (KRaftMetadataCache)
    for snapshot_id in log.snapshots()[-1:]:
        log.begin_at(snapshot_id)
    load(loader, log, disk)
    log.listen(loader.commit)
    snapshots = Snapshots(loader, log, settings.snapshots, 0, disk=disk, clock=clock, worker=worker)
    log.listen(snapshots.committed)
    return OnDisk(loader, log, snapshots)


def _observing(
    settings: Settings, quorum: Quorum, identity: Identity, on_disk: OnDisk, fetching: Controllers, outside: Outside
) -> Observing:
    directory_id = identity.directory_ids[settings.metadata_dir]
    node_id, leadership = settings.options.node_id, fetching.leadership
    return Observing(
        Observer(identity.cluster_id, node_id, directory_id, leadership, quorum.limits),
        on_disk.metadata_log,
        on_disk.loader,
        on_disk.snapshots,
        fetching,
        quorum.times,
        quorum.listener,
        outside.worker,
        outside.on_failure,
    )


def _node(
    settings: Settings,
    quorum: Quorum,
    identity: Identity,
    controller: RemoteController,
    on_disk: OnDisk,
    outside: Outside,
) -> RemoteNode:
    return RemoteNode(
        settings.options.node_id,
        identity,
        settings.log_dirs,
        settings.metadata_dir,
        controller,
        on_disk.loader.image,
        outside.new_uuid,
        clock=outside.clock,
        draw=outside.draw,
        times=quorum.life,
        rack=settings.options.rack,
        previous_broker_epoch=previous_epoch(outside.disk, settings.log_dirs),
    )


def _must_be_formatted(directory: str, disk: Disk) -> None:
    """Which cluster a new broker is of, nobody here can know. Raises WrongOwner, CorruptCheckpoint, OSError."""
    if read_meta_properties(disk, directory) is None:
        raise WrongOwner(
            f"log.dirs {directory}: there is no {META_PROPERTIES}, which says whose broker this is: format it with "
            "kafka-storage format and the cluster's id"
        )
