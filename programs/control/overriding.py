"""Puts errors into the answers of read requests: the request is carried out, and its answer is changed.

The request alone is not enough: a Fetch in a session names no unchanged partitions, and Metadata may name no topic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.dispatch.broker import Broker
from coordinator.cluster.topics.topic import NO_LEADER
from programs.control.conditions import Conditions
from programs.control.refusing import changed, put_topic
from programs.control.request_view import RequestView, SubjectPartition, topic_name
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.metadata import MetadataResponse
from protocol.types import NO_UUID

Override = Callable[[Broker, RequestView, object, Conditions, ErrorCode], None]
"""(broker, request, response, conditions, error) → None: puts the error into the response."""

FIRST_FETCH_WITH_IDS: Final = 13
NO_OFFSET: Final = -1


def without_wait(request: object) -> object:
    """Returns the request with a wait time of 0, so that the error is answered at once."""
    return changed(request, "max_wait_ms", 0) if hasattr(request, "max_wait_ms") else request


def override_fetch(
    broker: Broker, view: RequestView, response: object, conditions: Conditions, code: ErrorCode
) -> None:
    """Puts the error into partitions of a Fetch, including those of its session."""
    assert isinstance(response, FetchResponse)
    topics: list[object] = list(response.responses)
    for place in view.subjects.places:
        if conditions.mean(place) and place.partition is not None:
            put_topic(topics, fetched_error(broker, view, place.topic, place.partition, code))
    response.responses = [topic for topic in topics if isinstance(topic, FetchableTopicResponse)]


def fetched_error(
    broker: Broker, view: RequestView, name: str, partition: int, code: ErrorCode
) -> FetchableTopicResponse:
    """Returns the entry of a Fetch answer that rejects one partition."""
    data = PartitionData(
        partition_index=partition, error_code=int(code), high_watermark=NO_OFFSET, records=b"", aborted_transactions=[]
    )
    if view.header.version < FIRST_FETCH_WITH_IDS:
        return FetchableTopicResponse(topic=name, partitions=[data])
    topic = broker.image.topic(name)
    return FetchableTopicResponse(topic_id=NO_UUID if topic is None else topic.topic_id, partitions=[data])


def override_metadata(
    broker: Broker, view: RequestView, response: object, conditions: Conditions, code: ErrorCode
) -> None:
    """Puts the error into a topic or a partition. With LEADER_NOT_AVAILABLE the partition has no leader."""
    assert isinstance(response, MetadataResponse | DescribeTopicPartitionsResponse)
    for topic in response.topics:
        name = topic_name(broker, topic)
        if name is None or conditions.topic not in (None, name):
            continue
        if conditions.partition is None:
            topic.error_code, topic.partitions = int(code), []
            continue
        for partition in topic.partitions:
            if conditions.mean(SubjectPartition(name, partition.partition_index)):
                partition.error_code = int(code)
                partition.leader_id = NO_LEADER if code is ErrorCode.LEADER_NOT_AVAILABLE else partition.leader_id


OVERRIDDEN: Final[dict[int, Override]] = {
    ApiKey.FETCH: override_fetch,
    ApiKey.METADATA: override_metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: override_metadata,
}
