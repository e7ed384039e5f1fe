"""Joins the controllers of the configuration, which run in other processes, or in this one and others."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.dispatch.broker import Broker
from broker.dispatch.host import Forwarding, never
from broker.metadata.combining import combine
from broker.metadata.file_reads import FileReads
from broker.metadata.joining import Joined, MetadataEnvironment, MetadataWorkers, join
from broker.metadata.opening import Metadata, MetadataSettings
from broker.metadata.replicating import ReplicaPart, open_replica
from broker.replica.alter_partition import AlterPartition, AlterPartitionManager, altered_by
from broker.replica.fetcher_environment import ReplicationEnvironment
from broker.replica.partition import Partition
from broker.replica.replica_fetchers import ReplicaFetchers
from broker.replica.throttle import follower_throttle
from broker.security.outbound import broker_settings
from client.address import Address
from client.pool import Peer
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.configs.alter import refused_by_broker
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.image import Image
from programs.run.quorum_settings import quorum_of
from protocol.errors import KafkaError
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from storage.disk import Disk


def environment_of(
    disk: Disk,
    clock: Clock,
    worker: MetadataWorkers,
    on_failure: Callable[[KafkaError], None],
    on_fault: Callable[[Exception], None],
) -> MetadataEnvironment:
    """Returns the environment of this process."""
    return MetadataEnvironment(disk, clock, worker, os.urandom, random.random, on_failure, on_fault)


async def join_quorum(
    config: BrokerConfig,
    settings: MetadataSettings,
    endpoints: Sequence[Endpoint],
    failed: Container[str],
    environment: MetadataEnvironment,
) -> tuple[Metadata, Forwarding, AlterPartition]:
    """Registers the broker and waits until it has caught up. Returns the metadata, the functions by which
    clients' requests are forwarded, and the function that sends AlterPartition. Raises WrongOwner, CorruptCheckpoint,
    KafkaError, OSError."""
    joined = await join(settings, quorum_of(config), endpoints, failed, environment)
    return joined.metadata, _forwarding(config, settings, joined, never), altered_by(joined.isr_controller)


def open_voter(config: BrokerConfig, settings: MetadataSettings, environment: MetadataEnvironment) -> ReplicaPart:
    """Opens the voter of a node with both roles. Raises WrongOwner, CorruptCheckpoint, KafkaError, OSError."""
    return open_replica(settings, quorum_of(config), environment)


async def combine_with(
    part: ReplicaPart,
    config: BrokerConfig,
    settings: MetadataSettings,
    endpoints: Sequence[Endpoint],
    failed: Container[str],
    environment: MetadataEnvironment,
) -> tuple[Metadata, Forwarding, AlterPartition]:
    """Registers the broker of a node with both roles, as `join_quorum` does for a broker. Raises KafkaError."""
    joined = await combine(part, settings, quorum_of(config), endpoints, failed, environment)
    forwarding = _forwarding(config, settings, joined, lambda: part.controller.leads)
    return joined.metadata, forwarding, altered_by(joined.isr_controller)


def _forwarding(
    config: BrokerConfig, settings: MetadataSettings, joined: Joined, is_here: Callable[[], bool]
) -> Forwarding:
    rules = ConfigRules(config.node_id, checkers=settings.checkers, lists=settings.list_options)
    file_reads = FileReads(joined.metadata.node.clock)
    rejected = partial(rejected_configs, joined.metadata.image, rules, config.node_id, file_reads)
    return Forwarding(joined.controller.forward, rejected, is_here)


async def rejected_configs(
    image: Image, rules: ConfigRules, node_id: int, file_reads: FileReads, request: object
) -> Mapping[int, object]:
    """Returns the answers for the resources of a request that this broker rejects, by their index in it."""
    assert isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest), request

    async def decide(known: ConfigRules) -> Mapping[int, object]:
        return refused_by_broker(image, request, known, node_id)

    return await file_reads.decided(rules, decide)


class Replication(NamedTuple):
    """Both sides of replication: the fetchers of followers, and the ISR changes of leaders."""

    fetchers: ReplicaFetchers
    isr_manager: AlterPartitionManager

    async def stop(self) -> None:
        """Stops fetching, and stops proposing ISR changes."""
        self.fetchers.stop()
        await self.isr_manager.stop()


def replicate(broker: Broker, alter: AlterPartition | None) -> Replication:
    """Starts replication: this broker's followers fetch from leaders on other brokers, as roles and options change, and
    its leaders propose ISR changes: by `alter`, or to the controller in this process."""

    def connect(address: Address, client_id: str) -> Peer:
        return Peer(address, broker_settings(broker.config, client_id), broker.clock, random.random)

    environment = ReplicationEnvironment(
        broker.image,
        broker.node,
        broker.live_config,
        broker.clock,
        broker.disk_work,
        connect,
        follower_throttle(broker.clock, broker.live_config),
    )
    fetchers = ReplicaFetchers(environment)
    for partition in broker.replicas:
        fetchers.role_changed(partition)
    broker.replicas.subscribe_to_roles(fetchers.role_changed)
    broker.loader.subscribe(lambda _: fetchers.config_changed(broker.replicas))
    return Replication(fetchers, manage_isrs(broker, alter or altered_by(broker.controller)))


def manage_isrs(broker: Broker, alter: AlterPartition) -> AlterPartitionManager:
    """Lets all present and future leaders on this broker propose ISR changes."""
    node = broker.node
    manager = AlterPartitionManager(
        broker.replicas, node.node_id, lambda: node.broker_epoch, alter, broker.clock, random.random
    )

    def attach(partition: Partition) -> None:
        partition.propose = manager.propose

    for partition in broker.replicas:
        attach(partition)
    broker.replicas.subscribe(attach)
    return manager
