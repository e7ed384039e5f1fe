"""ShareGroupHeartbeat (76): a member of a share group joins, leaves, changes or just lives (KIP-932).

v1 is the first that stays. Partitions that a group reads for the first time have state made for them, and assignments
are made once a second only. Kafka answers before that, and the member hears of its partitions with its next heartbeat,
five seconds later; here who joins is answered once it has them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from broker.exchange.authorisation import DESCRIBE_TOPIC, READ_GROUP, by_handler
from broker.handlers.share_fetch import member_id_of
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.group_client import client_of
from coordinator.group.share.heartbeat import HeartbeatResult, heartbeat
from coordinator.group.share.member import JOINING
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

LONGEST_WAIT_S: Final = 2.0
"""The longest wait for state or an assignment: after it, the next heartbeat has it. Less than any client waits for an
answer, and more than it takes to make the topic of states."""

MOST_BEATS: Final = 3
"""Heartbeats on behalf of a member that joins: for state, an assignment, and one more should others join meanwhile."""


async def share_group_heartbeat(
    call: Call[ShareGroupHeartbeatRequest],
) -> ShareGroupHeartbeatResponse:
    if call.request.member_epoch == JOINING:
        return await joined(call)
    try:
        check(call)
        return (await beat(call, call.request)).response
    except KafkaError as error:
        return refused(error)


async def joined(call: Call[ShareGroupHeartbeatRequest]) -> ShareGroupHeartbeatResponse:
    """Returns the answer to a member that joins, after more heartbeats on its behalf if its partitions have to wait."""
    request, heard = call.request, None
    try:
        check(call)
        heard = await beat(call, request)
        for _ in range(MOST_BEATS):
            if has_partitions(heard.response) or not await is_worth_waiting(call, heard):
                break
            heard = await beat(
                call,
                ShareGroupHeartbeatRequest(
                    group_id=request.group_id,
                    member_id=request.member_id,
                    member_epoch=heard.response.member_epoch,
                    subscribed_topic_names=request.subscribed_topic_names,  # so that the answer has the assignment
                ),
            )
    except KafkaError as error:
        if heard is None:
            return refused(error)
    return heard.response  # it has joined, if nothing more: its next heartbeat is told what was wrong


async def beat(call: Call[ShareGroupHeartbeatRequest], request: ShareGroupHeartbeatRequest) -> HeartbeatResult:
    heard = await call.broker.groups.decide(request.group_id, heartbeat, request, client_of(call))
    initialize_later(call, heard)
    return heard


def has_partitions(response: ShareGroupHeartbeatResponse) -> bool:
    return response.assignment is not None and bool(response.assignment.topic_partitions)


async def is_worth_waiting(call: Call[ShareGroupHeartbeatRequest], heard: HeartbeatResult) -> bool:
    """Waits until another heartbeat may bring more; False if that is not soon."""
    if await call.broker.share_groups.initialized(call.request.group_id, LONGEST_WAIT_S):
        return True
    if heard.due_ms is None:
        return False
    left_s = (heard.due_ms - call.broker.clock.now_ms()) / 1000
    if left_s > LONGEST_WAIT_S:
        return False
    await asyncio.sleep(max(left_s, 0))
    return True


def check(call: Call[ShareGroupHeartbeatRequest]) -> None:
    """Raises UNSUPPORTED_VERSION, INVALID_REQUEST."""
    if not call.broker.share_groups.is_enabled:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    member_id_of(call.request.member_id)


def initialize_later(call: Call[ShareGroupHeartbeatRequest], heard: HeartbeatResult) -> None:
    """Initializes the state that the group lacks, in the background."""
    if heard.initialize is not None:
        call.broker.share_groups.initialize_later(heard.initialize)


def refused(error: KafkaError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, member_epoch=0, heartbeat_interval_ms=0
    )


REQUIRES = by_handler(READ_GROUP, DESCRIBE_TOPIC)
API = Api(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, share_group_heartbeat, REQUIRES)
