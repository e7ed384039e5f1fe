"""OffsetDelete (47): deletes committed offsets of topics to which a group is no longer subscribed (KIP-496)."""

from __future__ import annotations

from broker.dispatch.absent_partitions import merged, take_absent
from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id, client_of
from broker.dispatch.rules import each, in_order, of_group, whole
from broker.request.authorisation import DELETE_GROUP, READ_TOPIC
from coordinator.group.offsets.delete import delete
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
)


async def offset_delete(call: Call[OffsetDeleteRequest]) -> OffsetDeleteResponse:
    """Answers partitions that don't exist, and gets the answer for the rest from the group's shard."""
    request = call.request
    request.topics, absent = take_absent(call, request.topics, OffsetDeleteResponseTopic)
    check_group_id(request.group_id)
    response = await call.broker.groups.submit(request.group_id, delete, request, client_of(call))
    response.topics = merged(absent, response.topics)
    return response


API = Api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    offset_delete,
    authorize=in_order(whole(DELETE_GROUP, of_group), each(READ_TOPIC, beside_error=False)),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
