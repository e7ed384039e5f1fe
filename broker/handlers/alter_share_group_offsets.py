"""AlterShareGroupOffsets (91): sets the start offsets of a group without members (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping

from broker.dispatch.api import SHARE_GROUPS, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id
from broker.dispatch.rules import each, in_order, of_group, whole
from broker.request.authorisation import READ_GROUP, READ_TOPIC
from broker.shards.translations import seen_by_client
from broker.share.acknowledging import code_of, message_of
from broker.share.administration import alter
from coordinator.group.share.offsets import alter as alter_group
from coordinator.share.key import ShareKey
from protocol.errors import KafkaError
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from protocol.types import NO_UUID


async def alter_share_group_offsets(call: Call[AlterShareGroupOffsetsRequest]) -> AlterShareGroupOffsetsResponse:
    request = call.request
    start_offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        starts = {partition.partition_index: partition.start_offset for partition in topic.partitions}
        start_offsets.setdefault(topic.topic_name, {}).update(starts)
    check_group_id(request.group_id)
    altered = await call.broker.groups.submit(request.group_id, alter_group, request.group_id, start_offsets)
    failed = await alter(call.broker.share_groups, altered.initialize)
    errors = dict(altered.errors)
    for name, starts in start_offsets.items():
        named = call.broker.image.topic(name)
        topic_id = NO_UUID if named is None else named.topic_id
        for index in starts:
            if (error := failed.get(ShareKey(request.group_id, topic_id, index))) is not None:
                errors[name, index] = error
    return answer(call, errors)


def answer(
    call: Call[AlterShareGroupOffsetsRequest], errors: Mapping[tuple[str, int], KafkaError]
) -> AlterShareGroupOffsetsResponse:
    """Returns the answer. Each topic is in it once, and a partition that is named twice is in it twice."""
    topics: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
    for requested in call.request.topics:
        name = requested.topic_name
        topic = call.broker.image.topic(name)
        if topic is None and not requested.partitions:
            continue
        topic_id = NO_UUID if topic is None else topic.topic_id
        new = AlterShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=[])
        topics.setdefault(name, new).partitions += [
            answer_partition(partition.partition_index, errors.get((name, partition.partition_index)))
            for partition in requested.partitions
        ]
    return AlterShareGroupOffsetsResponse(error_code=0, responses=list(topics.values()))


def answer_partition(index: int, error: KafkaError | None) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=index, error_code=code_of(error), error_message=message_of(error)
    )


API = Api(
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    alter_share_group_offsets,
    authorize=in_order(
        whole(READ_GROUP, of_group),
        each(READ_TOPIC, "topics", "responses", lambda _, topic: topic.topic_name, beside_error=False),
    ),
    protocol=SHARE_GROUPS,
    entries=(Entries("topics", "responses", Entries("partitions", "partitions")),),
    translate=lambda error, _: seen_by_client(error),
    explains=True,
)
