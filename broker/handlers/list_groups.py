"""ListGroups (16): lists the groups that this broker coordinates.

v1 adds the throttle time, v3 is flexible, v4 filters by state (KIP-518), v5 by type (KIP-848).
"""

from __future__ import annotations

from broker.dispatch.api import Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rules import own
from broker.request.authorisation import DESCRIBE_CLUSTER, DESCRIBE_GROUP
from coordinator.group.groups import GroupFilter, group_ids, state_key
from coordinator.group.groups import list_groups as list_some
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

GROUPS = 1024
"""Groups that a shard lists together: each takes about two microseconds, and each answer waits for the shard's earlier
appends."""


async def list_groups(call: Call[ListGroupsRequest]) -> ListGroupsResponse:
    """Lists the groups of all shards here; COORDINATOR_LOAD_IN_PROGRESS while a shard is loading, because the list
    would be incomplete."""
    request, turns = call.request, call.turns()
    states = frozenset(await turns.map(state_key, request.states_filter))
    wanted = GroupFilter(states, frozenset(await turns.map(str.lower, request.types_filter)), ())
    groups: list[ListedGroup] = []
    for index in sorted(call.broker.groups.shards):
        try:
            groups += await listed_in(call, index, wanted)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_COORDINATOR:
                raise
    call.announce(len(groups))
    return ListGroupsResponse(error_code=0, groups=groups)


async def listed_in(call: Call[ListGroupsRequest], index: int, wanted: GroupFilter) -> list[ListedGroup]:
    """Lists a shard's groups in turns, without those that are deleted meanwhile."""
    client, turns, submit = client_of(call), call.turns(), call.broker.groups.submit_in
    await turns.next()
    names = await submit(index, group_ids, None, client)
    listed: list[ListedGroup] = []
    for start in range(0, len(names), GROUPS):
        await turns.next()
        some = wanted._replace(group_ids=names[start : start + GROUPS])
        found: list[ListedGroup] = await submit(index, list_some, some, client)
        listed += found
    return listed


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
