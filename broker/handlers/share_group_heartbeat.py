"""ShareGroupHeartbeat (76): a member of a share group joins, leaves, resubscribes or stays alive (KIP-932).

v1 is the first stable version. Partitions that a group reads for the first time need their state created, and
assignments are computed once a second only. Kafka answers before that, and the member learns its partitions with its
next heartbeat, five seconds later; here the answer to a member that joins waits until it has them.
"""

from __future__ import annotations

from typing import Final

from broker.clock import pause
from broker.dispatch.api import SHARE_GROUPS, Api
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.handlers.consumer_group_heartbeat import MEMBER
from broker.share.sessions import member_id_of
from coordinator.group.modern.group import JOINING
from coordinator.group.share.heartbeat import HeartbeatResult, heartbeat
from protocol.errors import KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

MAX_WAIT_MS: Final = 2_000
"""Maximum wait for state or an assignment: later, the next heartbeat returns it. Shorter than any client's request
timeout, and longer than the creation of the state topic takes."""

MAX_HEARTBEATS: Final = 3
"""Heartbeats on behalf of a member that joins: for its state, for its assignment, and another if other members join
meanwhile."""


async def share_group_heartbeat(call: Call[ShareGroupHeartbeatRequest]) -> ShareGroupHeartbeatResponse:
    if call.request.member_epoch == JOINING:
        return await join(call)
    check(call)
    return (await apply_heartbeat(call, call.request)).response


async def join(call: Call[ShareGroupHeartbeatRequest]) -> ShareGroupHeartbeatResponse:
    """Returns the answer to a member that joins, after more heartbeats on its behalf if its partitions have to wait."""
    request = call.request
    check(call)
    heartbeat_result = await apply_heartbeat(call, request)
    try:
        for _ in range(MAX_HEARTBEATS):
            if has_partitions(heartbeat_result.response) or not await is_worth_waiting(call, heartbeat_result):
                break
            heartbeat_result = await apply_heartbeat(
                call,
                ShareGroupHeartbeatRequest(
                    group_id=request.group_id,
                    member_id=request.member_id,
                    member_epoch=heartbeat_result.response.member_epoch,
                    subscribed_topic_names=request.subscribed_topic_names,  # so that the answer has the assignment
                ),
            )
    except KafkaError:
        pass  # the member has joined; the answer to its next heartbeat has the error
    return heartbeat_result.response


async def apply_heartbeat(
    call: Call[ShareGroupHeartbeatRequest], request: ShareGroupHeartbeatRequest
) -> HeartbeatResult:
    heartbeat_result = await call.broker.groups.submit(request.group_id, heartbeat, request, client_of(call))
    initialize_later(call, heartbeat_result)
    return heartbeat_result


def has_partitions(response: ShareGroupHeartbeatResponse) -> bool:
    return response.assignment is not None and bool(response.assignment.topic_partitions)


async def is_worth_waiting(call: Call[ShareGroupHeartbeatRequest], heartbeat_result: HeartbeatResult) -> bool:
    """Waits until another heartbeat may return more; False if that won't be soon."""
    if await call.broker.share_groups.initialized(call.request.group_id, MAX_WAIT_MS / 1000):
        return True
    if heartbeat_result.due_ms is None:
        return False
    left_ms = heartbeat_result.due_ms - call.broker.clock.now_ms()
    if left_ms > MAX_WAIT_MS:
        return False
    await pause(call.broker.clock, left_ms)
    return True


def check(call: Call[ShareGroupHeartbeatRequest]) -> None:
    """Raises INVALID_REQUEST."""
    member_id_of(call.request.member_id)


def initialize_later(call: Call[ShareGroupHeartbeatRequest], heartbeat_result: HeartbeatResult) -> None:
    """Initializes the state that the group lacks, in the background."""
    if heartbeat_result.initialize is not None:
        call.broker.share_groups.initialize_later(heartbeat_result.initialize)


API = Api(
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    share_group_heartbeat,
    authorize=MEMBER,
    protocol=SHARE_GROUPS,
    explains=True,
)
