"""Node: who this broker is, and its life in the cluster: registered, unfenced, stopping.

node.register(…) → fenced, with an epoch → node.unfence() → leads what it may → node.leave() → leads nothing, fenced.
Source: Kafka's BrokerLifecycleManager, KIP-631.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from enum import Enum

from coordinator.cluster.brokers.features import SUPPORTED
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.controller import Controller
from coordinator.cluster.formatting import Identity
from coordinator.cluster.image import Image
from coordinator.cluster.producer_ids import ProducerIdBlock
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from protocol.types import TopicPartition, Uuid
from storage.checkpoint import read_clean_shutdown
from storage.disk import Disk

UNKNOWN_EPOCH = -1
"""Of a broker that is not registered, or whose last stop left no trace."""


class NodeState(Enum):
    """A broker's life, by the names of org.apache.kafka.metadata.BrokerState."""

    STARTING = "starting"
    RECOVERY = "registered, fenced"
    RUNNING = "unfenced"
    PENDING_CONTROLLED_SHUTDOWN = "stopping"
    SHUTTING_DOWN = "stopped"


class Node:
    """This broker as the cluster has it."""

    def __init__(
        self,
        node_id: int,
        identity: Identity,
        log_dirs: Sequence[str],
        metadata_dir: str,
        controller: Controller,
        image: Image,
        new_uuid: Callable[[], Uuid],
        *,
        rack: str | None = None,
        previous_broker_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        """`previous_broker_epoch` is that of the session that was stopped in order, if the last one was."""
        self.node_id = node_id
        self.identity = identity
        self.metadata_dir = metadata_dir
        self.directory_ids = {path: identity.directory_ids[path] for path in log_dirs if path in identity.directory_ids}
        """The ids of this node's log directories, by path; one that failed at the start may have none."""
        self.incarnation_id = new_uuid()
        self.state = NodeState.STARTING
        self.broker_epoch = UNKNOWN_EPOCH
        """What the controller gave this session, which its clean-shutdown markers name."""
        self._controller = controller
        self._image = image
        self._rack = rack
        self._previous_broker_epoch = previous_broker_epoch
        self._offline: list[Uuid] = []

    def directory_of(self, directory_id: Uuid) -> str | None:
        """The path of one of this node's log directories."""
        return next((path for path, known in self.directory_ids.items() if known == directory_id), None)

    async def register(self, endpoints: Sequence[Endpoint], failed: Container[str] = ()) -> None:
        """Tell the cluster, and whoever opens this data next, where the node listens, and which of its log directories
        have not failed already. It is fenced, and leads nothing. Raises KafkaError."""
        response = await self._controller.register_broker(self._registration(endpoints, failed))
        self.broker_epoch = response.broker_epoch
        self.state = NodeState.RECOVERY

    def _registration(self, endpoints: Sequence[Endpoint], failed: Container[str]) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.identity.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                Listener(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
                for one in endpoints
            ],
            features=[
                Feature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
                for name, levels in SUPPORTED.items()
            ],
            rack=self._rack,
            log_dirs=[directory_id for path, directory_id in self.directory_ids.items() if path not in failed],
            previous_broker_epoch=self._previous_broker_epoch,
        )

    async def unfence(self) -> None:
        """Lead what this broker may. Raises KafkaError: BROKER_NOT_AVAILABLE where the controller does not let it."""
        response = await self._heartbeat()
        if response.is_fenced:
            message = f"broker {self.node_id} is still fenced: its metadata ends at offset {self._image.offset}"
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, message)
        self.state = NodeState.RUNNING

    async def leave(self) -> None:
        """Hand over what this broker leads, and be fenced, as after a controlled shutdown. Raises KafkaError."""
        if self.broker_epoch == UNKNOWN_EPOCH:
            return
        self.state = NodeState.PENDING_CONTROLLED_SHUTDOWN
        while not (await self._heartbeat(want_shut_down=True)).should_shut_down:
            pass  # the last partitions were just handed over
        self.state = NodeState.SHUTTING_DOWN

    async def directory_failed(self, path: str) -> None:
        """A log directory has failed: what is there has no leader until the node is back with it. Raises KafkaError."""
        self._offline.append(self.directory_ids[path])
        await self._heartbeat()

    async def _heartbeat(self, *, want_fence: bool = False, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._image.offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline),
        )
        return await self._controller.broker_heartbeat(request)

    async def assign_directories(self, places: Iterable[tuple[TopicPartition, Uuid]]) -> None:
        """Have the cluster know in which of this node's directories replicas are, after they were moved there."""
        directories: dict[Uuid, dict[Uuid, list[PartitionData]]] = {}
        for (name, index), directory_id in places:
            topic = self._image.topic(name)
            if topic is not None:
                partitions = directories.setdefault(directory_id, {}).setdefault(topic.topic_id, [])
                partitions.append(PartitionData(partition_index=index))
        request = AssignReplicasToDirsRequest(
            broker_id=self.node_id,
            broker_epoch=self.broker_epoch,
            directories=[
                DirectoryData(
                    id=directory_id,
                    topics=[
                        TopicData(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()
                    ],
                )
                for directory_id, topics in directories.items()
            ],
        )
        await self._controller.assign_replicas_to_dirs(request)

    def placed(self, name: TopicPartition, log_dir: str) -> None:
        """A replica is in a log directory that nobody had chosen. A controller in this process chooses."""

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """A block of producer ids for this broker. Raises KafkaError."""
        request = AllocateProducerIdsRequest(broker_id=self.node_id, broker_epoch=self.broker_epoch)
        response = await self._controller.allocate_producer_ids(request)
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)


def previous_epoch(disk: Disk, log_dirs: Iterable[str]) -> int:
    """The epoch of the session that was stopped in order, which every log directory's marker names; else UNKNOWN_EPOCH.

    Read it before the logs are opened, which takes the markers away (LogManager.readBrokerEpochFromCleanShutdownFiles).
    """
    try:
        epochs = {read_clean_shutdown(disk, directory) for directory in log_dirs}
    except OSError:
        return UNKNOWN_EPOCH
    (epoch,) = epochs if len(epochs) == 1 else (None,)
    return UNKNOWN_EPOCH if epoch is None else epoch
