"""ListGroups (16): lists the groups that this broker coordinates.

v1 adds the throttle time, v3 is flexible, v4 filters by state (KIP-518), v5 by type (KIP-848).
"""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_CLUSTER, DESCRIBE_GROUP, by_handler
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.group_client import client_of
from coordinator.group.groups import list_groups as list_shard
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


async def list_groups(call: Call[ListGroupsRequest]) -> ListGroupsResponse:
    """Lists the groups of all shards here; COORDINATOR_LOAD_IN_PROGRESS while one is loading, since the list would not
    be whole."""
    groups: list[ListedGroup] = []
    for index in sorted(call.broker.groups.shards):
        try:
            listed = await call.broker.groups.decided_at(index, list_shard, call.request, client_of(call))
            groups += listed
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=error.code, groups=[])
    return ListGroupsResponse(error_code=0, groups=groups)


API = Api(ListGroupsRequest, ListGroupsResponse, list_groups, by_handler(DESCRIBE_CLUSTER, DESCRIBE_GROUP))
