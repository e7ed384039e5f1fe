"""The guards of groups: READ to be a member, DESCRIBE to look, DELETE to delete.

A group that one may not know is answered with GROUP_AUTHORIZATION_FAILED, whether it is there or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.exchange.authorisation import (
    CLUSTER_ACTION_CLUSTER,
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_GROUP,
    Requirement,
)
from broker.guards.operations import NOT_REQUESTED, group_operations
from broker.handlers import consumer_group_heartbeat as consumer_group_heartbeat_handler
from broker.handlers.describe_groups import not_described
from broker.requests.api import Handle
from broker.requests.call import Call
from coordinator.group.modern.describe import undescribed
from protocol.errors import MESSAGES, ErrorCode, KafkaError
from protocol.messages import consumer_group_describe as consumer_describe
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
UNREADABLE_TOPICS: Final = "The group has described topic(s) that the client is not authorized to describe."
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
        denied = {key: code for key in keys if not call.may(requirement, key)}
    if not denied:
        answer: FindCoordinatorResponse = await handle(call)
        return answer
    if not is_batched:
        code = denied[request.key]
        return FindCoordinatorResponse(error_code=code, error_message=MESSAGES[code], node_id=-1, host="", port=-1)
    request.coordinator_keys = [key for key in keys if key not in denied]
    response: FindCoordinatorResponse = await handle(call)
    response.coordinators += [
        Coordinator(key=key, node_id=-1, host="", port=-1, error_code=denied[key], error_message="")
        for key in keys
        if key in denied
    ]
    return response


async def join_group(call: Call[JoinGroupRequest], handle: Handle) -> JoinGroupResponse:
    if not call.may(READ_GROUP, call.request.group_id):
        return JoinGroupResponse(
            error_code=DENIED,
            generation_id=-1,
            protocol_name=None if call.version >= FIRST_NULL_PROTOCOL_VERSION else "",
            leader="",
            member_id="",
            members=[],
        )
    response: JoinGroupResponse = await handle(call)
    return response


async def sync_group(call: Call[SyncGroupRequest], handle: Handle) -> SyncGroupResponse:
    if not call.may(READ_GROUP, call.request.group_id):
        return SyncGroupResponse(error_code=DENIED, assignment=b"")
    response: SyncGroupResponse = await handle(call)
    return response


async def heartbeat(call: Call[HeartbeatRequest], handle: Handle) -> HeartbeatResponse:
    if not call.may(READ_GROUP, call.request.group_id):
        return HeartbeatResponse(error_code=DENIED)
    response: HeartbeatResponse = await handle(call)
    return response


async def leave_group(call: Call[LeaveGroupRequest], handle: Handle) -> LeaveGroupResponse:
    if not call.may(READ_GROUP, call.request.group_id):
        return LeaveGroupResponse(error_code=DENIED)
    response: LeaveGroupResponse = await handle(call)
    return response


async def list_groups(call: Call[ListGroupsRequest], handle: Handle) -> ListGroupsResponse:
    """Lists those groups of which the client may know; all to those who may describe the cluster."""
    response: ListGroupsResponse = await handle(call)
    if not call.may(DESCRIBE_CLUSTER, quiet=True):
        names = call.permitted(DESCRIBE_GROUP, (group.group_id for group in response.groups), quiet=True)
        response.groups = [group for group in response.groups if group.group_id in names]
    return response


async def describe_groups(call: Call[DescribeGroupsRequest], handle: Handle) -> DescribeGroupsResponse:
    requested = call.request.groups
    permitted = call.permitted(DESCRIBE_GROUP, requested)
    call.request.groups = [name for name in requested if name in permitted]
    response: DescribeGroupsResponse = await handle(call)
    for group in response.groups:
        if group.authorized_operations != NOT_REQUESTED:
            group.authorized_operations = group_operations(call, group.group_id)
    response.groups += [not_described(name, KafkaError(DENIED)) for name in requested if name not in permitted]
    return response


async def delete_groups(call: Call[DeleteGroupsRequest], handle: Handle) -> DeleteGroupsResponse:
    requested = call.request.groups_names
    permitted = call.permitted(DELETE_GROUP, requested)
    call.request.groups_names = [name for name in requested if name in permitted]
    response: DeleteGroupsResponse = await handle(call)
    response.results += [
        DeletableGroupResult(group_id=name, error_code=DENIED)
        for name in dict.fromkeys(requested)
        if name not in permitted
    ]
    return response


async def consumer_group_heartbeat(
    call: Call[ConsumerGroupHeartbeatRequest], handle: Handle
) -> ConsumerGroupHeartbeatResponse:
    """Lets members of the group in, subscribed to topics of which they may know."""
    topics = call.request.subscribed_topic_names or ()
    if not call.may(READ_GROUP, call.request.group_id):
        return consumer_group_heartbeat_handler.failed(KafkaError(DENIED))
    if len(call.permitted(DESCRIBE_TOPIC, topics)) < len(set(topics)):
        return consumer_group_heartbeat_handler.failed(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    response: ConsumerGroupHeartbeatResponse = await handle(call)
    return response


async def consumer_group_describe(
    call: Call[consumer_describe.ConsumerGroupDescribeRequest], handle: Handle
) -> consumer_describe.ConsumerGroupDescribeResponse:
    """Describes the groups that one may describe, unless their members have topics of which one may not know."""
    requested = call.request.group_ids
    permitted = call.permitted(DESCRIBE_GROUP, requested)
    call.request.group_ids = [name for name in requested if name in permitted]
    response: consumer_describe.ConsumerGroupDescribeResponse = await handle(call)
    for group in response.groups:
        if group.authorized_operations != NOT_REQUESTED:
            group.authorized_operations = group_operations(call, group.group_id)
        if not set(consumer_topics(group)) <= call.permitted(DESCRIBE_TOPIC, consumer_topics(group), quiet=True):
            group.error_code, group.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNREADABLE_TOPICS
            group.members = []
    unknown = consumer_describe.DescribedGroup
    response.groups += [undescribed(unknown, name, KafkaError(DENIED)) for name in requested if name not in permitted]
    return response


def consumer_topics(group: consumer_describe.DescribedGroup) -> list[str]:
    """Returns the topics of a group's members: those that they subscribe to, have, and are to have."""
    return [
        name
        for member in group.members
        for name in (
            *member.subscribed_topic_names,
            *(topic.topic_name for topic in member.assignment.topic_partitions),
            *(topic.topic_name for topic in member.target_assignment.topic_partitions),
        )
    ]
