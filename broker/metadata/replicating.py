"""Opens a voter of a quorum of several controllers: identity, log, image, raft core, and the controller over them.

part = open_replica(settings, quorum, environment)
…                       # the listeners open, through which the voters reach each other
part.replica.start()
await part.cluster.stop()
part.cluster.close()
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from broker.metadata.controllers import Controllers
from broker.metadata.damage import Guard, find_evidence
from broker.metadata.elected_controller import ElectedController
from broker.metadata.joining import MetadataEnvironment, Quorum
from broker.metadata.loading import load
from broker.metadata.local_controller import KRaftUpgrading, LocalController
from broker.metadata.log import open_metadata_log
from broker.metadata.opening import ClusterPart, MetadataSettings, first_records
from broker.metadata.registering import Registering
from broker.metadata.remote_controller import RemoteController
from broker.metadata.replica import Channels, RaftReplica
from broker.metadata.replicated_log import ReplicatedLog
from broker.metadata.snapshots import Snapshots
from client.traffic import PeerTraffic
from coordinator.cluster.brokers.activation import own_registration
from coordinator.cluster.brokers.info import ControllerRegistration, Endpoint, FeatureRange
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.formatting import Identity, check_directory_ids, check_formatted, claim
from coordinator.cluster.image import Image
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum import FOLDER
from coordinator.cluster.quorum_state import QuorumState
from coordinator.quorum.leadership import Leadership
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import LeaderAndRole, LocalReplica
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.voter_set import VoterNode, VoterSet
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.types import NO_UUID


class ReplicaPart(NamedTuple):
    """The part of a node that is a voter, or may become a voter."""

    identity: Identity
    cluster: ClusterPart
    log: ReplicatedLog
    replica: RaftReplica
    controller: ElectedController
    leadership: Leadership
    """The leader and its address, for requests to the active controller."""

    @property
    def is_only_voter(self) -> bool:
        """True if no other node votes."""
        raft = self.replica.raft
        return raft.is_voter and len(raft.voters) == 1


def open_replica(settings: MetadataSettings, quorum: Quorum, environment: MetadataEnvironment) -> ReplicaPart:
    """Loads the newest snapshot; later records are applied once the quorum has committed them. Raises WrongOwner,
    CorruptCheckpoint, KafkaError, OSError."""
    identity = _identity(settings, environment)
    log = _open_log(settings, quorum, environment)
    loader = MetadataLoader(Image(identity.cluster_id), environment.on_fault)
    for snapshot_id in log.snapshots()[-1:]:
        log.begin_at(snapshot_id)
    load(loader, log, environment.disk)
    check_directory_ids(loader.image, settings.options.node_id, identity.directory_ids, environment.disk)
    log.listen(loader.committing)
    disk, clock, worker = environment.disk, environment.clock, environment.worker
    snapshots = Snapshots(loader, log, settings.snapshots, 0, disk=disk, clock=clock, worker=worker)
    log.listen(snapshots.committed)
    traffic = PeerTraffic()
    leadership = Leadership(QuorumState(), quorum.voters, quorum.bootstrap)
    fetches, votes, requests = (
        Controllers(leadership, peers, clock, environment.draw)
        for peers in (quorum.peers._replace(traffic=traffic), quorum.peers, quorum.peers)
    )
    raft = _raft(settings, quorum, identity, log, environment)
    replica = RaftReplica(raft, log, loader, snapshots, Channels(fetches, votes), clock, worker)
    if settings.options.has_broker:
        loader.image.controller_id = settings.options.node_id  # for clients: each broker forwards (KRaftMetadataCache)
    log.on_failure = environment.on_failure
    own = own_registration(settings.options.node_id, environment.new_uuid(), settings.options.controller_listeners)
    controller = _controller(settings, loader, log, replica, own, environment)
    active = RemoteController(requests, quorum.lifecycle.session_ms)
    registering = Registering(own, loader, active, clock, environment.draw)

    def led(leader: LeaderAndRole) -> None:
        _locate(leadership, replica, leader, quorum.listener)
        if not settings.options.has_broker:
            loader.image.controller_id = leader.leader_id
        controller.led(leader)

    async def stop() -> None:
        registering.stop()
        await replica.stop()
        await controller.stop()
        await requests.close()

    replica.on_leader = led
    cluster = ClusterPart(
        loader.image,
        loader,
        log,
        controller,
        snapshots,
        stop,
        traffic,
        is_loaded=lambda: log.is_loaded,
        view=replica.view,
    )
    return ReplicaPart(identity, cluster, log, replica, controller, leadership)


def _identity(settings: MetadataSettings, environment: MetadataEnvironment) -> Identity:
    check_formatted(settings.metadata_dir, environment.disk)
    return claim(
        settings.log_dirs,
        settings.metadata_dir,
        settings.options.node_id,
        settings.options.controller_listeners,
        settings.cluster_id,
        environment.new_uuid,
        disk=environment.disk,
        now_ms=environment.clock.now_ms(),
    )


def _open_log(settings: MetadataSettings, quorum: Quorum, environment: MetadataEnvironment) -> ReplicatedLog:
    disk, metadata_dir = environment.disk, settings.metadata_dir
    folder = os.path.join(metadata_dir, FOLDER)
    guard = Guard(folder, find_evidence(folder, settings.log_dirs, disk), disk, unwritten_epochs=1)

    def is_only_copy(log: ReplicatedLog) -> bool:
        with _readable(log):
            return log.voters(quorum.voters) in ([], [settings.options.node_id])

    return open_metadata_log(
        ReplicatedLog,
        metadata_dir,
        disk=disk,
        clock=environment.clock,
        worker=environment.worker,
        config=settings.log_config,
        guard=guard,
        is_only_copy=is_only_copy,
    )


def _raft(
    settings: MetadataSettings,
    quorum: Quorum,
    identity: Identity,
    log: ReplicatedLog,
    environment: MetadataEnvironment,
) -> Raft:
    options = settings.options
    replica = LocalReplica(
        identity.cluster_id,
        ReplicaKey(options.node_id, identity.directory_ids[settings.metadata_dir]),
        options.controller_listeners,
        quorum.listener,
        can_vote=True,
    )
    static = VoterSet(
        VoterNode(
            ReplicaKey(node_id, NO_UUID),
            (Endpoint(quorum.listener, location.host, location.port),),
            FeatureRange(0, 0),
        )
        for node_id, location in quorum.voters.items()
    )
    if not quorum.bootstrap:  # without any address it can find no other voter
        static = VoterSet([VoterNode(ReplicaKey(options.node_id, NO_UUID), options.controller_listeners)])
    with _readable(log):
        recovered = log.recover()
    return Raft(
        replica,
        quorum.raft,
        recovered,
        log.stored,
        static,
        quorum.bootstrap,
        lambda bound: int(environment.draw() * bound),
        environment.clock.now_ms,
        environment.clock.monotonic_ms(),
    )


@contextmanager
def _readable(log: ReplicatedLog) -> Iterator[None]:
    """Names the log in an error of its records."""
    try:
        yield
    except ProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{log.directory}: {error}") from error


def _controller(
    settings: MetadataSettings,
    loader: MetadataLoader,
    log: ReplicatedLog,
    replica: RaftReplica,
    own: ControllerRegistration,
    environment: MetadataEnvironment,
) -> ElectedController:
    options, metadata_dir = settings.options, settings.metadata_dir

    def activate() -> LocalController:
        configs = ConfigRules(options.node_id, options.static_configs, settings.checkers, settings.list_options)
        upgrading = KRaftUpgrading(replica.upgrade_problem, replica.upgrade)
        controller = LocalController(log, loader, options, configs, environment.new_uuid, environment.clock, upgrading)
        controller.activate(lambda: first_records(metadata_dir, environment.disk), own)
        return controller

    return ElectedController(log, activate, replica.resign)


def _locate(leadership: Leadership, replica: RaftReplica, leader: LeaderAndRole, listener: str) -> None:
    """Stores the leader's address, to which this node sends its requests for the active controller."""
    leadership.names_leader(leader.leader_id, leader.epoch)
    leadership.learn(replica.raft.voters.to_record(), listener)
    # A controller that isn't a voter yet knows the leader before the voters.
    if (address := replica.raft.leader_address) is not None:
        leadership.place(leader.leader_id, address)
