"""JoinGroup (11): a member joins a classic group, or its next rebalance.

v1 adds the rebalance timeout (KIP-62), v2 the throttle time, v4 makes new members join again with the id that they are
assigned (KIP-394), v5 adds static members (KIP-345), v6 is flexible, v7 adds the protocol's type (KIP-559), v8 takes a
reason (KIP-800), v9 lets a leader skip the assignment (KIP-814). The answer comes when all have joined.
"""

from __future__ import annotations

from typing import Final

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id, client_of
from broker.dispatch.rules import of_group, whole
from broker.request.authorisation import READ_GROUP
from coordinator.group import requests
from coordinator.group.classic.rebalance import join_refused
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.schema import nullable_since, since

FIRST_REBALANCE_TIMEOUT_VERSION = since(JoinGroupRequest, "rebalance_timeout_ms")
FIRST_NULL_PROTOCOL_VERSION = nullable_since(JoinGroupResponse, "protocol_name")

MAX_PROTOCOLS: Final = 10_000
"""Maximum number of a member's protocols. A client has a handful of assignors; a decision on 200,000 protocols would
hold the event loop for 0.7 s."""


async def join_group(call: Call[JoinGroupRequest]) -> JoinGroupResponse:
    request = call.request
    if call.version < FIRST_REBALANCE_TIMEOUT_VERSION:
        request.rebalance_timeout_ms = request.session_timeout_ms
    try:
        check(call)
    except KafkaError as error:
        return fit_to_version(call, join_refused(request.member_id, error.code))
    try:
        response = await call.broker.groups.submit(request.group_id, requests.join_group, request, client_of(call))
    except KafkaError as error:
        return fit_to_version(call, join_refused("", error.code))
    return fit_to_version(call, response)


def check(call: Call[JoinGroupRequest]) -> None:
    """Raises INVALID_GROUP_ID, INVALID_REQUEST, INVALID_SESSION_TIMEOUT."""
    check_group_id(call.request.group_id)
    if len(call.request.protocols) > MAX_PROTOCOLS:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    config = call.broker.config
    least, most = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not least <= call.request.session_timeout_ms <= most:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)


def fit_to_version(call: Call[JoinGroupRequest], response: JoinGroupResponse) -> JoinGroupResponse:
    """Fits the response to the version: older versions have no null; newer versions also use it for a protocol without
    a name."""
    response.protocol_name = response.protocol_name or (None if call.version >= FIRST_NULL_PROTOCOL_VERSION else "")
    return response


API = Api(JoinGroupRequest, JoinGroupResponse, join_group, authorize=whole(READ_GROUP, of_group))
