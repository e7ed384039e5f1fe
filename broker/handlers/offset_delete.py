"""OffsetDelete (47): deletes committed offsets of topics to which a group is no longer subscribed (KIP-496)."""

from __future__ import annotations

from operator import attrgetter

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id, client_of
from broker.dispatch.rules import each, in_order, of_group, whole
from broker.request.authorisation import DELETE_GROUP, READ_TOPIC
from broker.shards.answering import merged
from coordinator.group.offsets.delete import delete
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

NAME = attrgetter("name")


async def offset_delete(call: Call[OffsetDeleteRequest]) -> OffsetDeleteResponse:
    """Answers partitions that don't exist, and has the group's shard answer the rest."""
    request = call.request
    unknown = [absent for topic in request.topics if (absent := take_absent(call, topic)) is not None]
    request.topics = [topic for topic in request.topics if topic.partitions]
    check_group_id(request.group_id)
    response = await call.broker.groups.submit(request.group_id, delete, request, client_of(call))
    response.topics = merged(unknown, response.topics, NAME)
    return response


def take_absent(call: Call[OffsetDeleteRequest], topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic | None:
    """Removes partitions that don't exist from the topic in the request, and returns their answer; None if all
    exist."""
    topic_image = call.broker.image.topic(topic.name)
    existing = () if topic_image is None else topic_image.partitions
    absent: list[OffsetDeleteRequestPartition] = [p for p in topic.partitions if p.partition_index not in existing]
    topic.partitions = [p for p in topic.partitions if p.partition_index in existing]
    if topic_image is not None and not absent:
        return None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = [OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=code) for p in absent]
    return OffsetDeleteResponseTopic(name=topic.name, partitions=answers)


API = Api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    offset_delete,
    authorize=in_order(whole(DELETE_GROUP, of_group), each(READ_TOPIC, beside_error=False)),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
