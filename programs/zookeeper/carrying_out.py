"""Sends the inputs of old tools to the controller. Inputs that it rejects are logged.

Transient errors are raised as KafkaError, so that the caller tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar

from broker.config.layers import is_sensitive
from broker.logging import get_logger
from broker.replica.topics import TopicCreator
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.controller import Asker, Controller
from coordinator.cluster.image import Image
from programs.zookeeper.broker_configs import shown
from programs.zookeeper.inputs import (
    CONFIG_TYPES,
    ConfigInput,
    DeletedByTool,
    MorePartitions,
    MovesProgress,
    NewTopic,
    PreferredElection,
)
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsResponse
from protocol.messages.delete_topics import DeleteTopicsResponse
from protocol.messages.elect_leaders import ElectLeadersResponse
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

TRANSIENT: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
DELETE_BY_NAME: Final = Asker(version=5)
"""Version 5 is the last that deletes topics by their names alone."""

logger = get_logger(__name__)


def is_refused(code: int, message: str | None, purpose: str, *fine: ErrorCode) -> bool:
    """True if the controller rejects the input permanently, which is logged. Raises KafkaError for a transient
    error."""
    error = error_code(code)
    if error is ErrorCode.NONE or error in fine:
        return False
    if error in TRANSIENT:
        raise KafkaError(error, message or error.name)
    logger.warning("the input of a tool is rejected", input=purpose, error=error.name, reason=message or "")
    return True


T = TypeVar("T")


async def answer(request: Awaitable[T], purpose: str) -> T | None:
    """Returns the controller's answer; None if it rejects the whole request permanently."""
    try:
        return await request
    except KafkaError as error:
        is_refused(error.code, error.message, purpose)
        return None


class Hands:
    """Sends the requests of tools to the controller."""

    def __init__(self, image: Image, controller: Controller, topics: TopicCreator) -> None:
        self._image = image
        self._controller = controller
        self._topics = topics

    async def create(self, topic: NewTopic) -> bool:
        """Creates a topic. Returns True if that was rejected."""
        purpose = f"topic {topic.name}"
        response = await answer(self._topics.create(topic.request()), purpose)
        if response is None:
            return True
        (result,) = response.topics
        return is_refused(result.error_code, result.error_message, purpose, ErrorCode.TOPIC_ALREADY_EXISTS)

    async def add_partitions(self, more: MorePartitions) -> bool:
        """Adds partitions. Returns True if that was rejected."""
        purpose = f"partitions {', '.join(map(str, sorted(more.added)))} of topic {more.name}"
        if not more.continues:
            reason = f"partition {more.before} would be the next"
            logger.warning("the input of a tool is rejected", input=purpose, error="INVALID_PARTITIONS", reason=reason)
            return True
        response = await answer(self._topics.create_partitions(more.request()), purpose)
        if response is None:
            return True
        (result,) = response.results
        return is_refused(result.error_code, result.error_message, purpose)

    async def delete(self, topic: DeletedByTool) -> bool:
        """Deletes a topic. Returns True if that was rejected."""
        purpose = f"deletion of topic {topic.name}"
        deletion = self._controller.submit(topic.request(), DeleteTopicsResponse, DELETE_BY_NAME)
        response = await answer(deletion, purpose)
        if response is None:
            return True
        (result,) = response.responses
        return is_refused(result.error_code, result.error_message, purpose, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    async def elect(self, election: PreferredElection) -> None:
        """Makes the preferred replicas of partitions their leaders."""
        electing = self._controller.submit(election.request(), ElectLeadersResponse)
        response = await answer(electing, "preferred leaders")
        for topic in () if response is None else response.replica_election_results:
            for result in topic.partition_result:
                purpose = f"preferred leader of {topic.topic}-{result.partition_id}"
                is_refused(result.error_code, result.error_message, purpose, ErrorCode.ELECTION_NOT_NEEDED)

    async def reassign(self, progress: MovesProgress) -> set[tuple[str, int]]:
        """Starts to move replicas. Returns the partitions for which that was rejected."""
        for topic, index in progress.unknown:
            purpose = f"reassignment of {topic}-{index}"
            is_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition", purpose)
        if not progress.begin:
            return set()
        request = self._controller.submit(progress.request(), AlterPartitionReassignmentsResponse)
        response = await answer(request, "reassignment")
        if response is None or is_refused(response.error_code, response.error_message, "reassignment"):
            return set(progress.begin)
        return {
            (topic.name, partition.partition_index)
            for topic in response.responses
            for partition in topic.partitions
            if is_refused(
                partition.error_code,
                partition.error_message,
                f"reassignment of {topic.name}-{partition.partition_index}",
            )
        }

    async def configure(self, change: ConfigInput) -> Mapping[str, str]:
        """Sets an entity's configs. Returns its resulting configs that may be published."""
        resource = ConfigResource(CONFIG_TYPES[change.entity.kind], change.resource_name)
        secrets = [name for name in change.configs if resource.type is ResourceType.BROKER and is_sensitive(name)]
        if secrets:
            purpose = f"configs {', '.join(secrets)} of {resource}"
            is_refused(ErrorCode.INVALID_CONFIG, "passwords and unknown configs are not accepted from znodes", purpose)
        request = change.without(secrets).request(shown(self._image, resource))
        if request is not None:
            altering = self._controller.submit(request, IncrementalAlterConfigsResponse)
            response = await answer(altering, f"configs of {resource}")
            for result in () if response is None else response.responses:
                is_refused(result.error_code, result.error_message, f"configs of {resource}")
        return shown(self._image, resource)


def log_refusals(inputs: Sequence[tuple[str, str]]) -> None:
    """Logs znodes whose input can't be carried out."""
    for path, reason in inputs:
        logger.warning("the input of a tool is rejected", znode=path, reason=reason)
