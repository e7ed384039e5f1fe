"""AlterShareGroupOffsets (91): where the share partitions of a group without members shall start (KIP-932)."""

from __future__ import annotations

from broker.authorisation import READ_GROUP, READ_TOPIC, by_handler
from broker.coordinators.hosting import seen_by_client
from broker.dispatch import Api, Call
from broker.share.acknowledging import code_of, message_of
from broker.share.administration import alter
from coordinator.group.share_offsets import Wanted
from coordinator.group.share_offsets import alter as alter_group
from coordinator.share.records import ShareKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from protocol.types import NO_UUID


async def alter_share_group_offsets(call: Call[AlterShareGroupOffsetsRequest]) -> AlterShareGroupOffsetsResponse:
    request = call.request
    wanted = [
        Wanted(topic.topic_name, each.partition_index, each.start_offset)
        for topic in request.topics
        for each in topic.partitions
    ]
    try:
        if not call.broker.share_groups.is_enabled:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        altered = await call.broker.groups.decided(request.group_id, alter_group, request.group_id, wanted)
        failed = await alter(call.broker.share_groups, altered.initialize)
    except KafkaError as error:
        seen = seen_by_client(error)
        return AlterShareGroupOffsetsResponse(error_code=seen.code, error_message=seen.message, responses=[])
    errors = dict(altered.errors)
    for name, index, _ in wanted:
        topic = call.broker.image.topic(name)
        key = ShareKey(request.group_id, NO_UUID if topic is None else topic.topic_id, index)
        if key in failed:
            errors[name, index] = failed[key]
    return answer(call, wanted, errors)


def answer(
    call: Call[AlterShareGroupOffsetsRequest], wanted: list[Wanted], errors: dict[tuple[str, int], KafkaError]
) -> AlterShareGroupOffsetsResponse:
    topics: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
    for name, index, _ in wanted:
        if name not in topics:
            found = call.broker.image.topic(name)
            topic_id = NO_UUID if found is None else found.topic_id
            topics[name] = AlterShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=[])
        error = errors.get((name, index))
        topics[name].partitions.append(
            AlterShareGroupOffsetsResponsePartition(
                partition_index=index, error_code=code_of(error), error_message=message_of(error)
            )
        )
    return AlterShareGroupOffsetsResponse(error_code=0, responses=list(topics.values()))


REQUIRES = by_handler(READ_GROUP, READ_TOPIC)
API = Api(AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, alter_share_group_offsets, REQUIRES)
