"""Opens a node's part of the cluster: identity, log, image, controller, and the node itself.

metadata = open_metadata(settings, disk=disk, clock=clock, worker=worker, random_bytes=os.urandom, on_failure=stop)
await metadata.node.register(endpoints)      # once the listeners are bound and their ports known
metadata.loader.subscribe(on_delta)
await metadata.node.unfence()
await metadata.leave()                       # a controlled shutdown: Apache Kafka or this broker may start from there
metadata.close()
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from broker.clock import Clock
from broker.logging import get_logger
from broker.metadata.damage import Guard, find_evidence, remove_flushed
from broker.metadata.led_log import LedLog
from broker.metadata.loading import load
from broker.metadata.local_controller import LocalController
from broker.metadata.log import CONFIG, MetadataLog, Worker, open_metadata_log
from broker.metadata.node import Incarnation, Node, previous_epoch
from broker.metadata.snapshots import SnapshotRules, Snapshots
from client.traffic import PeerTraffic
from coordinator.cluster.brokers.activation import own_registration
from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.configs.rules import Checker, ConfigRules
from coordinator.cluster.controller import Controller
from coordinator.cluster.formatting import Identity, check_directory_ids, check_formatted, claim, random_uuid
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader, raised
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.quorum import FOLDER, opening_records, sole_voter
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.snapshot import BOOTSTRAP, read_bootstrap
from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import VotersRecord
from protocol.types import NO_UUID, Uuid
from storage.checkpoint import delete_clean_shutdown
from storage.config import LogConfig
from storage.disk import Disk
from storage.meta_properties import read_meta_properties

logger = get_logger(__name__)

EPOCHS_AHEAD = 1_000
"""Number of epochs by which a voter that becomes the only one skips those that the lost voters may have begun without
it: brokers would not follow a leader of an earlier epoch than they know. Elections take about a second each."""

NO_CHANNEL = PeerTraffic()
"""The traffic of a node that leads the log, and so fetches it from no other node: always zero."""


class AtOnce:
    """A worker that runs work at once, where no event loop must be kept free."""

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        work()
        then(None)


class MetadataSettings(NamedTuple):
    """The node's data directories, and the options of its metadata."""

    log_dirs: tuple[str, ...]
    options: ClusterOptions
    metadata_log_dir: str | None = None  # None: the first of log_dirs
    cluster_id: str | None = None  # the id of a new cluster; None draws one
    checkers: Mapping[ResourceType, Checker] = MappingProxyType({})
    snapshots: SnapshotRules = SnapshotRules()
    log_config: LogConfig = CONFIG
    list_options: Mapping[ResourceType, Mapping[str, str | None]] = MappingProxyType({})  # as ConfigRules needs them
    hands_over: bool = True  # as in Incarnation

    @property
    def metadata_dir(self) -> str:
        return self.metadata_log_dir or self.log_dirs[0]


def begin_incarnation(
    settings: MetadataSettings, identity: Identity, new_uuid: Callable[[], Uuid], disk: Disk
) -> Incarnation:
    """Returns this run of the broker. Call it before the logs are opened, which removes clean-shutdown markers."""
    return Incarnation(
        settings.options.node_id,
        identity,
        settings.log_dirs,
        settings.metadata_dir,
        incarnation_id=new_uuid(),
        rack=settings.options.rack,
        previous_broker_epoch=previous_epoch(disk, settings.log_dirs),
        hands_over=settings.hands_over,
    )


def always() -> bool:
    """Returns True: the image is loaded before any request is answered."""
    return True


class QuorumView(NamedTuple):
    """The replicas of the metadata log, as this node knows them. The default is a voter without others."""

    voters: int = 1
    observers: int = 0
    """Number of replicas that fetch from this node, which leads, and don't vote."""
    is_changing: bool = False
    """True if this node leads, and a change of the voters is not committed yet."""


class ClusterPart(NamedTuple):
    """A node's part in the cluster, whatever its roles are."""

    image: Image
    loader: MetadataLoader
    metadata_log: MetadataLog
    controller: Controller
    snapshots: Snapshots
    stop: Callable[[], Awaitable[None]]
    """Ends the work in the background: following the log, or the controller's duties."""
    channel: PeerTraffic = NO_CHANNEL
    """The traffic of the connection that fetches the log."""
    current_as_of_ms: Callable[[], int] | None = None
    """Returns the monotonic time at which the leader had no more records than the image has; None if this node
    leads.
    """
    is_loaded: Callable[[], bool] = always
    """Returns True once the image has all records that were committed before this node started."""
    view: Callable[[], QuorumView] = QuorumView

    def close(self) -> None:
        """Closes the log. No flush may be in progress. Raises LogDirFailure."""
        self.snapshots.close()
        self.snapshots.write_if_due()
        self.metadata_log.close()


class ControllerPart(NamedTuple):
    """The part of a node with the controller's role."""

    identity: Identity
    cluster: ClusterPart
    led_log: LedLog


class Metadata(NamedTuple):
    """The part of a node with the broker's role."""

    cluster: ClusterPart
    node: Node
    led_log: LedLog | None = None
    """The log of a controller in this process; None without one."""

    async def leave(self) -> None:
        """Leaves the cluster by a controlled shutdown, and stops following its log. Raises KafkaError."""
        try:
            await self.node.leave()
        finally:
            await self.cluster.stop()

    def close(self) -> None:
        """Closes the log, after the node has left. No flush may be in progress. Raises LogDirFailure."""
        self.cluster.close()

    @property
    def image(self) -> Image:
        return self.cluster.image

    @property
    def loader(self) -> MetadataLoader:
        return self.cluster.loader

    @property
    def metadata_log(self) -> MetadataLog:
        return self.cluster.metadata_log

    @property
    def controller(self) -> Controller:
        return self.cluster.controller

    @property
    def snapshots(self) -> Snapshots:
        return self.cluster.snapshots


def open_metadata(
    settings: MetadataSettings,
    *,
    disk: Disk,
    clock: Clock,
    worker: Worker,
    random_bytes: Callable[[int], bytes],
    on_failure: Callable[[KafkaError], None],
    on_fault: Callable[[Exception], None] = raised,
) -> Metadata:
    """Opens the part of a node that is broker and controller: `open_controller`, and the broker with it.

    Call it before the logs are opened, which removes their clean-shutdown markers.
    """
    identity, cluster, led_log = open_controller(
        settings,
        disk=disk,
        clock=clock,
        worker=worker,
        random_bytes=random_bytes,
        on_failure=on_failure,
        on_fault=on_fault,
    )
    incarnation = begin_incarnation(settings, identity, lambda: random_uuid(random_bytes), disk)
    return Metadata(cluster, Node(incarnation, cluster.controller, cluster.image, clock), led_log)


def open_controller(
    settings: MetadataSettings,
    *,
    disk: Disk,
    clock: Clock,
    worker: Worker,
    random_bytes: Callable[[int], bytes],
    on_failure: Callable[[KafkaError], None],
    on_fault: Callable[[Exception], None] = raised,
) -> ControllerPart:
    """Formats empty directories, loads the metadata, and leads its log in a new epoch. A controller that other nodes
    can reach is not formatted here, because it may belong to an existing cluster.

    `on_fault` is called with subscribers' errors. Raises WrongOwner, CorruptCheckpoint, KafkaError, OSError.
    """
    options, metadata_dir = settings.options, settings.metadata_dir

    def new_uuid() -> Uuid:
        return random_uuid(random_bytes)

    if options.is_reachable:
        check_formatted(metadata_dir, disk)
    identity = claim(
        settings.log_dirs,
        metadata_dir,
        options.node_id,
        options.controller_listeners,
        settings.cluster_id,
        new_uuid,
        disk=disk,
        now_ms=clock.now_ms(),
    )
    folder = os.path.join(metadata_dir, FOLDER)
    guard = Guard(folder, find_evidence(folder, settings.log_dirs, disk), disk)
    log = open_metadata_log(
        LedLog, metadata_dir, disk=disk, clock=clock, worker=worker, config=settings.log_config, guard=guard
    )
    log.recover()
    loader = MetadataLoader(Image(identity.cluster_id), on_fault)
    replayed_bytes = load(loader, log, disk)
    check_directory_ids(loader.image, options.node_id, identity.directory_ids, disk)
    log.listen(loader.committing)
    _check_only_voter(log, loader, options.node_id, "without controller.listener.names the others cannot reach it")
    own_voter = sole_voter(options.node_id, identity.directory_ids[metadata_dir], options.controller_listeners)
    _lead(log, loader, options.node_id, own_voter if options.is_reachable or not log.end_offset else None)
    image = loader.image
    image.controller_id, image.controller_epoch = options.node_id, log.epoch
    snapshots = Snapshots(loader, log, settings.snapshots, replayed_bytes, disk=disk, clock=clock, worker=worker)
    log.listen(snapshots.committed)
    configs = ConfigRules(options.node_id, options.static_configs, settings.checkers, settings.list_options)
    controller = LocalController(log, loader, options, configs, new_uuid, clock)

    def failed(error: KafkaError) -> None:
        controller.renounce(error)
        on_failure(error)

    log.on_failure = failed
    own = own_registration(options.node_id, new_uuid(), options.controller_listeners)
    controller.activate(lambda: first_records(metadata_dir, disk), own)
    snapshots.write_if_due()
    return ControllerPart(identity, ClusterPart(image, loader, log, controller, snapshots, controller.stop), log)


def first_records(metadata_dir: str, disk: Disk) -> Sequence[MetadataRecord]:
    """Returns the records of a new cluster. Raises KafkaError, ProtocolError, OSError."""
    records = read_bootstrap(disk, metadata_dir)
    if records is None:
        message = "no bootstrap checkpoint: the cluster begins without users and with all features"
        logger.warning(message, path=os.path.join(metadata_dir, BOOTSTRAP))
        return bootstrap_records()
    return records


def accept_loss(
    log_dirs: Sequence[str], metadata_dir: str, *, disk: Disk, clock: Clock, only_voter: bool = False
) -> int:
    """Lets a controller's next start continue with the records that its log still has, and returns the log's end
    offset. With `only_voter`, this controller becomes the only voter, whichever voters the log has.

    Saves the damaged part in a file beside the log, and begins an epoch after any that other files have, so that the
    next start doesn't miss the lost records. Raises WrongOwner, CorruptCheckpoint, KafkaError, OSError.
    """
    check_formatted(metadata_dir, disk)
    properties = read_meta_properties(disk, metadata_dir)
    assert properties is not None
    folder = os.path.join(metadata_dir, FOLDER)
    guard = Guard(folder, find_evidence(folder, log_dirs, disk), disk, accept=True)
    log = open_metadata_log(LedLog, metadata_dir, disk=disk, clock=clock, worker=AtOnce(), guard=guard)
    log.recover()
    loader = MetadataLoader(Image(properties.cluster_id))
    load(loader, log, disk)
    node_id, directory_id = properties.node_id, properties.directory_id or NO_UUID
    if not only_voter:
        _check_only_voter(log, loader, node_id, "the others have its records, so replace its disk instead")
    own = sole_voter(node_id, directory_id, _endpoints(log, loader, node_id))
    changes_voters = only_voter or log.end_offset == 0
    _lead(log, loader, node_id, own if changes_voters else None, EPOCHS_AHEAD if only_voter else 1)
    log.close()
    remove_flushed(folder, disk)
    for directory in dict.fromkeys((*log_dirs, metadata_dir)):
        delete_clean_shutdown(disk, directory)
    return log.end_offset


def _check_only_voter(log: LedLog, loader: MetadataLoader, node_id: int, advice: str) -> None:
    """Raises KafkaError, with the advice, if the log has other voters."""
    voters = [] if loader.voters is None else [voter.voter_id for voter in loader.voters.voters]
    if voters not in ([], [node_id]):
        raise KafkaError(
            ErrorCode.INCONSISTENT_VOTER_SET,
            f"{log.directory}: the quorum has the voters {', '.join(map(str, sorted(voters)))}; node.id {node_id} can "
            f"lead it only as its only voter: {advice}",
        )


def _endpoints(log: LedLog, loader: MetadataLoader, node_id: int) -> list[Endpoint]:
    """Returns the endpoints of a voter of the log; none if the configuration has the voters. Raises KafkaError if the
    node is not a voter."""
    if loader.voters is None:
        return []
    for voter in loader.voters.voters:
        if voter.voter_id == node_id:
            return [Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints]
    voters = ", ".join(map(str, sorted(voter.voter_id for voter in loader.voters.voters)))
    raise KafkaError(
        ErrorCode.INCONSISTENT_VOTER_SET,
        f"{log.directory}: node {node_id} is not among the voters {voters}: make one of them the only voter",
    )


def _lead(log: LedLog, loader: MetadataLoader, node_id: int, own: VotersRecord | None, ahead: int = 1) -> None:
    """Leads the log in a new epoch. If the log has voters, they become `own`, unless that is None. Raises
    LogDirFailure, LogDirFull."""
    in_log = loader.voters
    opening = opening_records(node_id, own, in_log, is_empty=log.end_offset == 0)
    log.lead(node_id, opening, (node_id,) if in_log is None else None, ahead=ahead)
