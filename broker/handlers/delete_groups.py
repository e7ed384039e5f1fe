"""DeleteGroups (42): deletes groups without members, and their offsets.

v2 is flexible, v3 has messages to errors (KIP-1331).
"""

from __future__ import annotations

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rules import each, itself
from broker.request.authorisation import DELETE_GROUP
from broker.shards.translations import seen_by_client
from broker.share.administration import delete_group_state
from coordinator.group.groups import delete_groups as delete_in_shard
from protocol.errors import KafkaError
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def delete_groups(call: Call[DeleteGroupsRequest]) -> DeleteGroupsResponse:
    """Deletes the groups; a group that is named twice is deleted once."""
    names = dict.fromkeys(call.request.groups_names)
    return DeleteGroupsResponse(results=[await delete(call, group_id) for group_id in names])


async def delete(call: Call[DeleteGroupsRequest], group_id: str) -> DeletableGroupResult:
    try:
        await delete_group_state(call.broker.share_groups, group_id)
        (result,) = await call.broker.groups.submit(group_id, delete_in_shard, [group_id], client_of(call))
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=seen_by_client(error).code)
    return result


API = Api(
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    delete_groups,
    authorize=each(DELETE_GROUP, "groups_names", "results", itself, rejected=dict.fromkeys),
    entries=(Entries("groups_names", "results"),),
)
