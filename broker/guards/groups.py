"""The guards of groups: READ to be a member, DESCRIBE to look, DELETE to delete.

A group that one may not know is answered with GROUP_AUTHORIZATION_FAILED, whether it is there or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from broker.exchange.authorisation import (
    CLUSTER_ACTION_CLUSTER,
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_GROUP,
    Requirement,
)
from broker.guards.operations import NOT_REQUESTED, group_operations
from broker.guards.shapes import description, membership, of_group, whole
from broker.handlers import consumer_group_heartbeat as consumer_group_heartbeat_handler
from broker.handlers.describe_groups import not_described
from broker.requests.api import Handle
from broker.requests.call import Call
from protocol.errors import MESSAGES, ErrorCode, KafkaError
from protocol.messages import consumer_group_describe as consumer_describe
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.sync_group import SyncGroupResponse

DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
FIRST_NULL_PROTOCOL_VERSION: Final = 7
FIRST_BATCHED_VERSION: Final = 4

KEYS: Final[Mapping[int, tuple[Requirement, ErrorCode]]] = {
    0: (DESCRIBE_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (DESCRIBE_TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
"""The requirement of FindCoordinator on a key, by its type. Share partitions are the brokers' own business."""

SHARE: Final = 2


async def find_coordinator(call: Call[FindCoordinatorRequest], handle: Handle) -> FindCoordinatorResponse:
    request, is_batched = call.request, call.version >= FIRST_BATCHED_VERSION
    keys = request.coordinator_keys if is_batched else [request.key]
    denied: dict[str, ErrorCode] = {}
    if request.key_type == SHARE and not call.may(CLUSTER_ACTION_CLUSTER):
        denied = dict.fromkeys(keys, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    elif request.key_type in KEYS:
        requirement, code = KEYS[request.key_type]
        permitted = await call.permitted(requirement, keys)
        denied = {key: code for key in keys if key not in permitted}
    if not denied:
        answer: FindCoordinatorResponse = await handle(call)
        return answer
    if not is_batched:
        code = denied[request.key]
        return FindCoordinatorResponse(error_code=code, error_message=MESSAGES[code], node_id=-1, host="", port=-1)
    request.coordinator_keys = [key for key in keys if key not in denied]
    response: FindCoordinatorResponse = await handle(call)
    response.coordinators += await call.turns().map(
        lambda key: Coordinator(key=key, node_id=-1, host="", port=-1, error_code=denied[key], error_message=""),
        [key for key in keys if key in denied],
    )
    return response


def not_joined(call: Call[JoinGroupRequest]) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=DENIED,
        generation_id=-1,
        protocol_name=None if call.version >= FIRST_NULL_PROTOCOL_VERSION else "",
        leader="",
        member_id="",
        members=[],
    )


join_group: Final = whole(READ_GROUP, not_joined, of_group)
sync_group: Final = whole(READ_GROUP, lambda _: SyncGroupResponse(error_code=DENIED, assignment=b""), of_group)
heartbeat: Final = whole(READ_GROUP, lambda _: HeartbeatResponse(error_code=DENIED), of_group)
leave_group: Final = whole(READ_GROUP, lambda _: LeaveGroupResponse(error_code=DENIED), of_group)


async def list_groups(call: Call[ListGroupsRequest], handle: Handle) -> ListGroupsResponse:
    """Lists those groups of which the client may know; all to those who may describe the cluster."""
    response: ListGroupsResponse = await handle(call)
    if not call.may(DESCRIBE_CLUSTER, quiet=True):
        names = await call.permitted(DESCRIBE_GROUP, (group.group_id for group in response.groups), quiet=True)
        response.groups = [group for group in response.groups if group.group_id in names]
    return response


async def describe_groups(call: Call[DescribeGroupsRequest], handle: Handle) -> DescribeGroupsResponse:
    requested = call.request.groups
    permitted = await call.permitted(DESCRIBE_GROUP, requested)
    call.request.groups = [name for name in requested if name in permitted]
    response: DescribeGroupsResponse = await handle(call)
    for group in response.groups:
        if group.authorized_operations != NOT_REQUESTED:
            group.authorized_operations = group_operations(call, group.group_id)
    denied = [name for name in requested if name not in permitted]
    response.groups += await call.turns().map(lambda name: not_described(name, KafkaError(DENIED)), denied)
    return response


async def delete_groups(call: Call[DeleteGroupsRequest], handle: Handle) -> DeleteGroupsResponse:
    requested = call.request.groups_names
    permitted = await call.permitted(DELETE_GROUP, requested)
    call.request.groups_names = [name for name in requested if name in permitted]
    response: DeleteGroupsResponse = await handle(call)
    denied = [name for name in dict.fromkeys(requested) if name not in permitted]
    response.results += await call.turns().map(
        lambda name: DeletableGroupResult(group_id=name, error_code=DENIED), denied
    )
    return response


def topics_of(member: consumer_describe.Member) -> Iterator[str]:
    """Yields the topics of a member: those that it subscribes to, has, and is to have."""
    yield from member.subscribed_topic_names
    for assignment in (member.assignment, member.target_assignment):
        yield from (topic.topic_name for topic in assignment.topic_partitions)


consumer_group_heartbeat: Final = membership(consumer_group_heartbeat_handler.failed)
consumer_group_describe: Final = description(consumer_describe.DescribedGroup, topics_of)
