"""DeleteShareGroupOffsets (92): removes topics from a share group without members (KIP-932)."""

from __future__ import annotations

from broker.dispatch.api import SHARE_GROUPS, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id
from broker.dispatch.rules import each, in_order, of_group, whole
from broker.request.authorisation import DELETE_GROUP, READ_TOPIC
from broker.shards.translations import seen_by_client
from broker.share.acknowledging import code_of, message_of
from broker.share.administration import finish_delete
from coordinator.group.share.offsets import begin_delete
from protocol.errors import KafkaError
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from protocol.types import NO_UUID, Uuid


async def delete_share_group_offsets(call: Call[DeleteShareGroupOffsetsRequest]) -> DeleteShareGroupOffsetsResponse:
    group_id = call.request.group_id
    names = [topic.topic_name for topic in call.request.topics]
    check_group_id(group_id)
    deletion = await call.broker.groups.submit(group_id, begin_delete, group_id, names)
    failed = await finish_delete(call.broker.share_groups, group_id, deletion)
    responses = [topic(name, topic_id, failed.get(topic_id)) for topic_id, name in deletion.names.items()]
    responses += [topic(name, NO_UUID, error) for name, error in deletion.errors.items()]
    return DeleteShareGroupOffsetsResponse(error_code=0, responses=responses)


def topic(name: str, topic_id: Uuid, error: KafkaError | None) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, topic_id=topic_id, error_code=code_of(error), error_message=message_of(error)
    )


API = Api(
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    delete_share_group_offsets,
    authorize=in_order(
        whole(DELETE_GROUP, of_group),
        each(READ_TOPIC, "topics", "responses", lambda _, topic: topic.topic_name, beside_error=False),
    ),
    protocol=SHARE_GROUPS,
    entries=(Entries("topics", "responses"),),
    translate=lambda error, _: seen_by_client(error),
    explains=True,
)
