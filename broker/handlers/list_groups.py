"""ListGroups (16): lists the groups that this broker coordinates.

v1 adds the throttle time, v3 is flexible, v4 filters by state (KIP-518), v5 by type (KIP-848).
"""

from __future__ import annotations

from broker.dispatch.api import Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rules import own
from broker.request.authorisation import DESCRIBE_CLUSTER, DESCRIBE_GROUP
from coordinator.group.groups import GroupFilter, state_key
from coordinator.group.groups import list_groups as list_shard
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


async def list_groups(call: Call[ListGroupsRequest]) -> ListGroupsResponse:
    """Lists the groups of all shards here; COORDINATOR_LOAD_IN_PROGRESS while a shard is loading, because the list
    would be incomplete."""
    request, client, turns = call.request, client_of(call), call.turns()
    states = await turns.map(state_key, request.states_filter)
    wanted = GroupFilter(frozenset(states), frozenset(await turns.map(str.lower, request.types_filter)))
    groups: list[ListedGroup] = []
    for index in sorted(call.broker.groups.shards):
        try:
            listed: list[ListedGroup] = await call.broker.groups.submit_at(
                index, lambda shard, ticket, now_ms: list_shard(shard.state, wanted, client, ticket, now_ms)
            )
            groups += listed
            call.announce(len(listed))
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_COORDINATOR:
                raise
    return ListGroupsResponse(error_code=0, groups=groups)


async def listed_for(call: Call[ListGroupsRequest], handle: Handle) -> ListGroupsResponse:
    """Authorizes the client for each group in the list, unless DESCRIBE on CLUSTER is allowed; denied groups are left
    out."""
    response: ListGroupsResponse = await handle(call)
    if not call.may(DESCRIBE_CLUSTER, quiet=True):
        names = await call.permitted(DESCRIBE_GROUP, (group.group_id for group in response.groups), quiet=True)
        response.groups = [group for group in response.groups if group.group_id in names]
    return response


API = Api(
    ListGroupsRequest, ListGroupsResponse, list_groups, authorize=own(listed_for, DESCRIBE_CLUSTER, DESCRIBE_GROUP)
)
