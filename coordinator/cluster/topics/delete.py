"""Decides on DeleteTopics. Source: Kafka's ControllerApis.deleteTopics and ReplicationControlManager.deleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from coordinator.cluster.image import Image
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import ClusterResult, MetadataRecord
from coordinator.cluster.rejections import error_message, out_of_time
from coordinator.cluster.security.mutation_quota import Charge, unlimited
from coordinator.cluster.topics.names import EVERYTHING
from coordinator.engine.result import Ticket, answered
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from protocol.metadata_records.topics import RemoveTopicRecord
from protocol.types import NO_UUID, Uuid

DISABLED_SINCE = 3
"""The first version of the request whose clients know TOPIC_DELETION_DISABLED."""


def delete_topics(
    image: Image,
    request: DeleteTopicsRequest,
    ticket: Ticket[DeleteTopicsResponse],
    options: ClusterOptions,
    version: int,
    deletable: Container[str] = EVERYTHING,
    describable: Container[str] = EVERYTHING,
    charge: Charge = unlimited,
) -> ClusterResult:
    """Returns the decision on topics by name or id, with a result for each. A client that may not describe a topic does
    not learn its name, or if it exists. `charge` charges the deleted partitions to the client's quota. Raises
    KafkaError if topic deletion is disabled.
    """
    if not options.delete_topic_enable:
        if version < DISABLED_SINCE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    deletion = _Deletion(image, deletable, describable)
    states = [*request.topics, *(DeleteTopicState(name=name, topic_id=NO_UUID) for name in request.topic_names)]
    named = Counter(state.name for state in states if state.name is not None and state.topic_id == NO_UUID)
    by_id = Counter(state.topic_id for state in states if state.name is None and state.topic_id != NO_UUID)
    if 1 in (*named.values(), *by_id.values()) and (late := out_of_time(request.timeout_ms)):
        for state in states:
            deletion.refuse(state.name, state.topic_id, late)
        return answered(ticket, DeleteTopicsResponse(responses=deletion.results))
    for state in states:
        if (state.name is None) == (state.topic_id == NO_UUID):
            neither = state.name is None
            what = "Neither topic name nor id were specified." if neither else _BOTH
            deletion.refuse(state.name, state.topic_id, KafkaError(ErrorCode.INVALID_REQUEST, what))
    for topic_id, count in by_id.items():
        deletion.by_id(topic_id, count)
    for name, count in named.items():
        deletion.by_name(name, count, by_id)
    deletion.charge(charge)
    return answered(ticket, DeleteTopicsResponse(responses=deletion.results), deletion.records)


_BOTH = "You may not specify both topic name and topic id."


class _Deletion:
    """The results of one request."""

    def __init__(self, image: Image, deletable: Container[str], describable: Container[str]) -> None:
        self._image = image
        self._deletable = deletable
        self._describable = describable
        self.results: list[DeletableTopicResult] = []

    @property
    def records(self) -> list[MetadataRecord]:
        """Returns the records of the deleted topics."""
        return [
            RemoveTopicRecord(topic_id=result.topic_id)
            for result in self.results
            if result.error_code == ErrorCode.NONE
        ]

    def refuse(self, name: str | None, topic_id: Uuid, error: KafkaError) -> None:
        self.results.append(
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=error.code, error_message=error_message(error)
            )
        )

    def by_id(self, topic_id: Uuid, count: int) -> None:
        topic = self._image.topic_by_id(topic_id)
        if count > 1:
            self.refuse(None, topic_id, KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic id."))
        elif topic is None:
            message = "This server does not host this topic ID."
            self.refuse(None, topic_id, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, message))
        elif topic.name not in self._deletable:
            name = topic.name if topic.name in self._describable else None
            self.refuse(name, topic_id, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            self._remove(topic.name, topic_id)

    def by_name(self, name: str, count: int, by_id: Counter[Uuid]) -> None:
        topic = self._image.topic(name)
        if count > 1:
            self.refuse(name, NO_UUID, KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif name not in self._describable:
            self.refuse(name, NO_UUID, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None:
            message = "This server does not host this topic-partition."
            self.refuse(name, NO_UUID, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message))
        elif name not in self._deletable:
            self.refuse(name, NO_UUID, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic.topic_id in by_id:
            self._take_back(topic.topic_id)
            message = "The provided topic name maps to an ID that was already supplied."
            self.refuse(name, topic.topic_id, KafkaError(ErrorCode.INVALID_REQUEST, message))
        else:
            self._remove(name, topic.topic_id)

    def _remove(self, name: str, topic_id: Uuid) -> None:
        self.results.append(
            DeletableTopicResult(name=name, topic_id=topic_id, error_code=ErrorCode.NONE, error_message=None)
        )

    def _take_back(self, topic_id: Uuid) -> None:
        """Doesn't delete a topic that the request names twice, by id and by name."""
        self.results = [
            result for result in self.results if result.topic_id != topic_id or result.error_code != ErrorCode.NONE
        ]

    def charge(self, charge: Charge) -> None:
        """Charges for each deleted topic; a topic that exceeds the quota is not deleted."""
        for result in self.results:
            topic = self._image.topic_by_id(result.topic_id) if result.error_code == ErrorCode.NONE else None
            if topic is not None:
                try:
                    charge(len(topic.partitions))
                except KafkaError as error:
                    result.error_code, result.error_message = error.code, error_message(error)
