"""DescribeGroups (15): describes the state and members of classic groups.

v1 adds the throttle time, v3 authorised operations (KIP-430), v4 instance ids (KIP-345), v5 is flexible, v6 has an
error for a group that does not exist, which is a dead group in earlier versions (KIP-1043).
"""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.operations import group_operations
from broker.dispatch.rules import each, itself
from broker.request.authorisation import DESCRIBE_GROUP
from coordinator.group.groups import describe_classic
from protocol.errors import KafkaError
from protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


async def describe_groups(call: Call[DescribeGroupsRequest]) -> DescribeGroupsResponse:
    groups = await call.turns().map_awaited(partial(describe, call), call.request.groups)
    return DescribeGroupsResponse(groups=groups)


async def describe(call: Call[DescribeGroupsRequest], group_id: str) -> DescribedGroup:
    try:
        (described,) = await call.broker.groups.submit(group_id, describe_classic, [group_id], client_of(call))
    except KafkaError as error:
        return not_described(group_id, error)
    call.count(len(described.members))
    if not described.error_code:
        described.authorized_operations = group_operations(call, group_id, call.request.include_authorized_operations)
    return described


def not_described(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(
        error_code=error.code, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
    )


API = Api(
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    describe_groups,
    authorize=each(DESCRIBE_GROUP, "groups", "groups", itself),
    entries=(Entries("groups", "groups"),),
)
