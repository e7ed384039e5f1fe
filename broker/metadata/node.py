"""Node: this broker's identity, and its life in the cluster: registered, unfenced, stopping.

node.register(…) → fenced, with an epoch → node.unfence() → leads its partitions → node.leave() → leads nothing, fenced.

Source: Kafka's BrokerLifecycleManager, KIP-631.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from broker.clock import Clock, pause
from broker.logging import get_logger
from coordinator.cluster.brokers.features import SUPPORTED
from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.controller import Controller
from coordinator.cluster.formatting import Identity
from coordinator.cluster.image import Image
from coordinator.cluster.producer_ids import ProducerIdBlock
from protocol.backoff import Backoff
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from protocol.types import TopicPartition, Uuid
from storage.checkpoint import read_clean_shutdown
from storage.disk import Disk

if TYPE_CHECKING:
    from protocol.messages import allocate_producer_ids as allocations
    from protocol.messages import assign_replicas_to_dirs as assignments
else:  # with the first request of its kind
    allocations = lazy("protocol.messages.allocate_producer_ids")
    assignments = lazy("protocol.messages.assign_replicas_to_dirs")

UNKNOWN_EPOCH = -1
"""The broker epoch of a broker that is not registered, or whose last stop left no marker."""

LEAVING: Final = Backoff(initial_ms=50, max_ms=2_000)
"""The pause between heartbeats that request a shutdown."""

LEAVE_MS: Final = 5 * 60 * 1000
"""Time in which a controller that answers must move the leaders to other brokers, as in Kafka's brokers."""

logger = get_logger("broker.metadata")


class NodeState(Enum):
    """The states of a broker's life, under the names of org.apache.kafka.metadata.BrokerState."""

    STARTING = "starting"
    RECOVERY = "registered, fenced"
    RUNNING = "unfenced"
    PENDING_CONTROLLED_SHUTDOWN = "stopping"
    SHUTTING_DOWN = "stopped"


class Incarnation(NamedTuple):
    """One run of this broker, as it registers: its identity, its log directories, and how its last run ended."""

    node_id: int
    identity: Identity
    log_dirs: tuple[str, ...]
    metadata_dir: str
    incarnation_id: Uuid
    rack: str | None = None
    previous_broker_epoch: int = UNKNOWN_EPOCH
    """The broker epoch of the last run, if that was stopped cleanly."""
    hands_over: bool = True
    """True if a stop is a controlled shutdown (controlled.shutdown.enable)."""


class Node:
    """This broker as a member of the cluster."""

    begins_anew: ClassVar[bool] = False
    """True if a replica whose log directory is gone starts empty. False here: the start creates a missing directory,
    for example of an unmounted disk, and the disk may come back with all its logs.
    """

    def __init__(self, incarnation: Incarnation, controller: Controller, image: Image, clock: Clock) -> None:
        self.incarnation = incarnation
        self.node_id = incarnation.node_id
        self.identity = identity = incarnation.identity
        self.metadata_dir = incarnation.metadata_dir
        self.directory_ids = {
            path: identity.directory_ids[path] for path in incarnation.log_dirs if path in identity.directory_ids
        }
        """The ids of this node's log directories, by path. A directory that failed at the start may have none."""
        self.state = NodeState.STARTING
        self.broker_epoch = UNKNOWN_EPOCH
        """The epoch that the controller assigned to this registration; clean-shutdown markers have it."""
        self._controller = controller
        self._image = image
        self.clock = clock
        self._offline: list[Uuid] = []

    def directory_of(self, directory_id: Uuid | None) -> str | None:
        """Returns the path of a log directory by its id; None if this node doesn't have the directory."""
        return next((path for path, own_id in self.directory_ids.items() if own_id == directory_id), None)

    @property
    def is_in_touch(self) -> bool:
        """True if the controller has answered within the last session timeout. Otherwise this broker's image may be
        outdated.
        """
        return True

    async def register(self, endpoints: Sequence[Endpoint], failed: Container[str] = ()) -> None:
        """Registers the node, with its endpoints and its log directories that have not failed. It is then fenced, and
        leads nothing. Raises KafkaError.
        """
        await self._submit_registration(self._registration(endpoints, failed))
        self.state = NodeState.RECOVERY

    async def _submit_registration(self, request: BrokerRegistrationRequest) -> None:
        """Registers, and stores the broker epoch from the answer. Raises KafkaError."""
        response = await self._controller.submit(request, BrokerRegistrationResponse)
        self.broker_epoch = response.broker_epoch

    def _registration(self, endpoints: Sequence[Endpoint], failed: Container[str]) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.identity.cluster_id,
            incarnation_id=self.incarnation.incarnation_id,
            listeners=[
                Listener(
                    name=endpoint.name,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=endpoint.security_protocol,
                )
                for endpoint in endpoints
            ],
            features=[
                Feature(name=name, min_supported_version=levels.min_level, max_supported_version=levels.max_level)
                for name, levels in SUPPORTED.items()
            ],
            rack=self.incarnation.rack,
            log_dirs=[directory_id for path, directory_id in self.directory_ids.items() if path not in failed],
            previous_broker_epoch=self.incarnation.previous_broker_epoch,
        )

    async def unfence(self) -> None:
        """Asks the controller to unfence this broker, which may then lead. Raises KafkaError: BROKER_NOT_AVAILABLE if
        the controller keeps it fenced.
        """
        response = await self._heartbeat()
        if response.is_fenced:
            message = f"broker {self.node_id} is still fenced: its metadata ends at offset {self._image.offset}"
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, message)
        self.state = NodeState.RUNNING

    async def leave(self) -> None:
        """Performs a controlled shutdown: hands over the partitions that this broker leads, and is fenced. Gives up if
        it still leads some partitions after LEAVE_MS. Without controlled.shutdown.enable, sends no request to the
        controller. Raises KafkaError."""
        if self.broker_epoch == UNKNOWN_EPOCH:
            return
        if not self.incarnation.hands_over:
            self.state = NodeState.SHUTTING_DOWN
            return
        self.state = NodeState.PENDING_CONTROLLED_SHUTDOWN
        deadline_ms, answers = self.clock.monotonic_ms() + LEAVE_MS, 0
        while not (await self._heartbeat(want_shut_down=True)).should_shut_down:
            if self.clock.monotonic_ms() >= deadline_ms:
                logger.warning("the controller did not complete this broker's controlled shutdown", node=self.node_id)
                break
            if answers:  # the first answer may have handed over the last leaders
                await pause(self.clock, LEAVING.delay_ms(answers))
            answers += 1
        self.state = NodeState.SHUTTING_DOWN

    async def directory_failed(self, path: str) -> None:
        """Reports a failed log directory; the controller then elects other leaders for its partitions. Raises
        KafkaError.
        """
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
        return await self._controller.submit(request, BrokerHeartbeatResponse)

    async def assign_directories(self, placements: Iterable[tuple[TopicPartition, Uuid]]) -> None:
        """Reports the log directories of replicas. Raises KafkaError."""
        directories: dict[Uuid, dict[Uuid, list[assignments.PartitionData]]] = {}
        for (name, index), directory_id in placements:
            topic = self._image.topic(name)
            if topic is not None:
                partitions = directories.setdefault(directory_id, {}).setdefault(topic.topic_id, [])
                partitions.append(assignments.PartitionData(partition_index=index))
        request = assignments.AssignReplicasToDirsRequest(
            broker_id=self.node_id,
            broker_epoch=self.broker_epoch,
            directories=[
                assignments.DirectoryData(
                    id=directory_id,
                    topics=[
                        assignments.TopicData(topic_id=topic_id, partitions=partitions)
                        for topic_id, partitions in topics.items()
                    ],
                )
                for directory_id, topics in directories.items()
            ],
        )
        await self._controller.submit(request, assignments.AssignReplicasToDirsResponse)

    def placed(self, name: TopicPartition, log_dir: str) -> None:
        """Records the log directory of a new replica for which the controller has chosen none. Does nothing here,
        because a controller in this process chooses one.
        """

    async def moved(self, name: TopicPartition, log_dir: str) -> None:
        """Reports the new log directory of a replica that was moved. Raises KafkaError."""
        await self.assign_directories([(name, self.directory_ids[log_dir])])

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Returns a new block of producer ids for this broker. Raises KafkaError."""
        request = allocations.AllocateProducerIdsRequest(broker_id=self.node_id, broker_epoch=self.broker_epoch)
        response = await self._controller.submit(request, allocations.AllocateProducerIdsResponse)
        return ProducerIdBlock(response.producer_id_start, response.producer_id_len)


def previous_epoch(disk: Disk, log_dirs: Iterable[str]) -> int:
    """Returns the broker epoch of the last run, if the markers of all log directories show that it was stopped cleanly;
    otherwise UNKNOWN_EPOCH.

    Call it before the logs are opened, which removes the markers (LogManager.readBrokerEpochFromCleanShutdownFiles).
    """
    try:
        epochs = {read_clean_shutdown(disk, directory) for directory in log_dirs}
    except OSError:
        return UNKNOWN_EPOCH
    (epoch,) = epochs if len(epochs) == 1 else (None,)
    return UNKNOWN_EPOCH if epoch is None else epoch
