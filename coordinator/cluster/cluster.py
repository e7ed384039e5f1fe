"""The cluster's metadata, whole: log, image, decisions, for the broker's composition root.

cluster = Cluster.open(node, disk=disk, clock=clock, worker=worker, random_bytes=os.urandom, on_failure=stop)
cluster.register(endpoints)                       # once the listeners are bound and their ports known
cluster.image.subscribe(on_change)
response = await cluster.create_topics(request)   # released once its records are on the device
cluster.close()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from coordinator.cluster.alter_configs import alter_configs, incremental_alter_configs
from coordinator.cluster.broker_info import Endpoint
from coordinator.cluster.config_rules import Checker, ConfigRules
from coordinator.cluster.create_partitions import create_partitions
from coordinator.cluster.create_topics import EVERYTHING, create_topics
from coordinator.cluster.decided import MAX_RECORDS, Decided
from coordinator.cluster.delete_topics import delete_topics
from coordinator.cluster.elect_leaders import elect_leaders
from coordinator.cluster.features import bootstrap_records, update_features
from coordinator.cluster.formatting import Identity, claim, random_uuid
from coordinator.cluster.image import METADATA_VERSION, Image
from coordinator.cluster.metadata_log import MetadataLog, Worker, open_metadata_log, sole_voter
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.producer_ids import ProducerIdBlock, ProducerIdPool, next_block
from coordinator.cluster.reassignments import alter_partition_reassignments
from coordinator.cluster.record import MetadataForm, MetadataRecord
from coordinator.cluster.registration import (
    abort_record,
    activation_records,
    directory_records,
    offline_records,
    registration_records,
    shutdown_records,
    unregister_records,
)
from coordinator.cluster.replay import load
from coordinator.cluster.resource import ResourceType
from coordinator.cluster.snapshot import BOOTSTRAP, read_snapshot
from coordinator.cluster.snapshots import Snapshots
from coordinator.runtime import Clock, Outcome, Runtime, Ticket, reply
from protocol.errors import KafkaError
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from protocol.types import TopicPartition, Uuid
from storage.checkpoint import read_clean_shutdown
from storage.disk import Disk

A = TypeVar("A")

KEY = "cluster metadata"
"""The one shard of its runtime."""


class Node(NamedTuple):
    """Where this node's data is, and how it is configured."""

    log_dirs: tuple[str, ...]
    options: ClusterOptions
    metadata_log_dir: str | None = None  # the first of log_dirs unless set
    cluster_id: str | None = None  # what a new cluster is named; drawn unless set
    checkers: Mapping[ResourceType, Checker] = MappingProxyType({})
    list_options: Mapping[ResourceType, Mapping[str, str]] = MappingProxyType({})  # as ConfigRules takes them

    @property
    def metadata_dir(self) -> str:
        return self.metadata_log_dir or self.log_dirs[0]


class ClusterShard:
    """The image as a shard: it has no deadlines."""

    def __init__(self, image: Image) -> None:
        self.apply = image.apply

    def expire(self, now_ms: int) -> Outcome[MetadataRecord]:
        return Outcome()

    def next_deadline_ms(self) -> int | None:
        return None

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        return now_ms

    def tickets(self) -> Iterable[Hashable]:
        """Nobody waits for a later decision."""
        return ()


class Cluster:
    """Open with `Cluster.open`. The coroutines raise KafkaError; their answers are those of Kafka's controller."""

    def __init__(
        self,
        node: Node,
        identity: Identity,
        image: Image,
        log: MetadataLog,
        snapshots: Snapshots,
        clock: Clock,
        new_uuid: Callable[[], Uuid],
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        self.node = node
        self.identity = identity
        self.image = image
        self.log = log
        self.options = node.options
        self.rules = ConfigRules(node.options.node_id, node.options.static_configs, node.checkers, node.list_options)
        self._snapshots = snapshots
        self.clean = False
        """Whether the last session ended in order; unknown before `Cluster.open` has looked."""
        self._new_uuid = new_uuid
        self._on_failure = on_failure
        self._form = MetadataForm(lambda: image.metadata_version)
        self._runtime: Runtime[MetadataRecord] = Runtime(clock, lambda _, error: on_failure(error))
        self._runtime.adopt(KEY, ClusterShard(image), log, self._form)
        self._clock = clock
        self.producer_ids = ProducerIdPool(self.allocate_producer_ids)

    @classmethod
    def open(
        cls,
        node: Node,
        *,
        disk: Disk,
        clock: Clock,
        worker: Worker,
        random_bytes: Callable[[int], bytes],
        on_failure: Callable[[KafkaError], None],
    ) -> Cluster:
        """Format what is empty, load what is there, lead the metadata log in a new epoch.

        Call it before the logs are opened, which takes their clean-shutdown markers away. Raises WrongOwner,
        CorruptCheckpoint, KafkaError, OSError.
        """
        options = node.options

        def new_uuid() -> Uuid:
            return random_uuid(random_bytes)

        identity = claim(
            node.log_dirs,
            node.metadata_dir,
            options.node_id,
            options.controller_listener,
            node.cluster_id,
            new_uuid,
            disk=disk,
            now_ms=clock.now_ms(),
        )
        voters = sole_voter(options.node_id, identity.directory_ids[node.metadata_dir], options.controller_listener)
        log = open_metadata_log(node.metadata_dir, options.node_id, voters, disk=disk, clock=clock, worker=worker)
        image = Image(identity.cluster_id)
        replay = load(image, log, disk)
        image.controller_id, image.controller_epoch = options.node_id, log.epoch
        snapshots = Snapshots(image, log, replay, disk, clock)
        cluster = cls(node, identity, image, log, snapshots, clock, new_uuid, on_failure)
        cluster.clean = cluster._was_clean(disk)
        cluster._activate(replay.in_transaction, disk)
        snapshots.write_if_due()
        return cluster

    def _was_clean(self, disk: Disk) -> bool:
        """As Kafka judges it: every directory has the marker of the session that registered last (KIP-966)."""
        try:
            epochs = {read_clean_shutdown(disk, directory) for directory in self.node.log_dirs}
        except OSError:
            return False
        return epochs <= {-1, self.broker_epoch}

    def _activate(self, in_transaction: bool, disk: Disk) -> None:
        if in_transaction:
            self._write([abort_record()])
        if METADATA_VERSION not in self.image.features:
            try:
                bootstrap = read_snapshot(disk, os.path.join(self.node.metadata_dir, BOOTSTRAP)).records
            except FileNotFoundError:
                bootstrap = bootstrap_records()
            self._write(activation_records(self.image, bootstrap, self.options))

    @property
    def broker_epoch(self) -> int:
        """The offset of this broker's registration, which its clean-shutdown markers name; -1 before there is one."""
        broker = self.image.brokers.get(self.options.node_id)
        return -1 if broker is None else broker.epoch

    @property
    def directory_ids(self) -> dict[str, Uuid]:
        """The ids of this node's log directories, by path; one that failed at the start may have none."""
        known = self.identity.directory_ids
        return {directory: known[directory] for directory in self.node.log_dirs if directory in known}

    def directory_of(self, directory_id: Uuid) -> str | None:
        """The path of one of this node's log directories."""
        return next((path for path, known in self.directory_ids.items() if known == directory_id), None)

    def register(self, endpoints: Sequence[Endpoint], failed: Container[str] = ()) -> None:
        """Tell the cluster, and whoever opens this data next, where the node listens, and lead its partitions again,
        but for those in log directories that have failed already."""
        incarnation_ids = self._new_uuid(), self._new_uuid()
        log_dirs = [directory_id for path, directory_id in self.directory_ids.items() if path not in failed]
        records = registration_records(self.image, self.options, endpoints, log_dirs, incarnation_ids, clean=self.clean)
        self._write(records)
        self.log.when_committed(self.log.end_offset, self._registered)

    def _registered(self, error: KafkaError | None) -> None:
        if error is not None:
            self._on_failure(error)

    def close(self) -> None:
        """Leave in order, so that Apache Kafka or we find everything as a controlled shutdown leaves it.

        Raises LogDirFailure, and KafkaError if the log had failed before.
        """
        self._write(shutdown_records(self.image, self.options.node_id))
        self._snapshots.write_if_due()
        self.log.close()

    def _write(self, records: Sequence[MetadataRecord]) -> None:
        """Append and apply without waiting for a commit: what the node says of itself."""
        for start in range(0, len(records), MAX_RECORDS):
            part = records[start : start + MAX_RECORDS]
            self.log.append(self._form.encode(part, self._clock.now_ms()))
            for record in part:
                self.image.apply(record)

    async def _decide(self, decision: Callable[[], Decided[A]]) -> A:
        """Decide, append, apply; the answer once it is durable."""
        if self.log.failed is not None:
            raise self.log.failed

        def decide(ticket: Ticket[A], _now_ms: int) -> Outcome[MetadataRecord]:
            records, response = decision()
            return Outcome(records, [reply(ticket, response)])

        return await self._runtime.submit(KEY, decide)

    async def create_topics(
        self, request: CreateTopicsRequest, describable: Container[str] = EVERYTHING
    ) -> CreateTopicsResponse:
        """CreateTopics, of topics that may be created; `describable` are those whose configs may be told."""
        return await self._decide(
            lambda: create_topics(self.image, request, self.options, self.rules, self._new_uuid, describable)
        )

    async def delete_topics(
        self,
        request: DeleteTopicsRequest,
        version: int,
        deletable: Container[str] = EVERYTHING,
        describable: Container[str] = EVERYTHING,
    ) -> DeleteTopicsResponse:
        """DeleteTopics, with what the asker may do, since topics by id have no name before they are looked up."""
        return await self._decide(
            lambda: delete_topics(self.image, request, self.options, version, deletable, describable)
        )

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """CreatePartitions, of topics that may be altered."""
        return await self._decide(lambda: create_partitions(self.image, request))

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """AlterConfigs, of resources that may be altered."""
        return await self._decide(lambda: alter_configs(self.image, request, self.rules))

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        """IncrementalAlterConfigs, of resources that may be altered and are in the metadata (no broker loggers)."""
        return await self._decide(lambda: incremental_alter_configs(self.image, request, self.rules))

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """ElectLeaders."""
        return await self._decide(lambda: elect_leaders(self.image, request))

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """AlterPartitionReassignments."""
        return await self._decide(lambda: alter_partition_reassignments(self.image, request))

    async def update_features(self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        """UpdateFeatures."""
        return await self._decide(lambda: update_features(self.image, request, self.options.min_insync_replicas))

    async def unregister_broker(self, broker_id: int) -> None:
        """UnregisterBroker."""
        await self._decide(lambda: Decided(unregister_records(self.image, broker_id), None))

    async def assign_directories(self, places: Sequence[tuple[TopicPartition, Uuid]]) -> None:
        """Record in which of this node's directories replicas are, after they were found or moved there."""
        node_id = self.options.node_id
        await self._decide(lambda: Decided([*directory_records(self.image, node_id, places)], None))

    async def directory_failed(self, path: str) -> None:
        """A log directory of this node has failed: what is there has no leader until the node is back with it."""
        failed = [self.directory_ids[path]]
        await self._decide(lambda: Decided(offline_records(self.image, self.options.node_id, failed), None))

    async def write(self, records: Sequence[MetadataRecord]) -> None:
        """Append records that another room decided on: ACLs, SCRAM credentials, quotas, delegation tokens."""
        await self._decide(lambda: Decided(records, None))

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A block of producer ids for this broker."""
        return await self._decide(lambda: next_block(self.image, self.options.node_id))

    async def next_producer_id(self) -> int:
        """A producer id that nobody had."""
        return await self.producer_ids.next_id()
