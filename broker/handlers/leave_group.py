"""LeaveGroup (13): members leave a classic group, which rebalances without them.

v1 adds the throttle time, v3 takes several members, also by instance id (KIP-345), v4 is flexible, v5 takes reasons
(KIP-800).
"""

from __future__ import annotations

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id, client_of
from broker.dispatch.rules import of_group, whole
from broker.request.authorisation import READ_GROUP
from coordinator.group import requests
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from protocol.schema import since

FIRST_BATCHED_VERSION = since(LeaveGroupRequest, "members")


async def leave_group(call: Call[LeaveGroupRequest]) -> LeaveGroupResponse:
    request = call.request
    if call.version < FIRST_BATCHED_VERSION:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        check_group_id(request.group_id)
        response = await call.broker.groups.submit(request.group_id, requests.leave_group, request, client_of(call))
    except KafkaError as error:
        return failed(call, error)
    return fit_to_version(call, response)


def fit_to_version(call: Call[LeaveGroupRequest], response: LeaveGroupResponse) -> LeaveGroupResponse:
    """Fits the response to the version: in older versions the only member's error is the answer's error."""
    if call.version < FIRST_BATCHED_VERSION and response.members:
        return LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
    return response


def failed(call: Call[LeaveGroupRequest], error: KafkaError) -> LeaveGroupResponse:
    if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error.code)
    members = [
        MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error.code)
        for member in call.request.members
    ]
    return fit_to_version(call, LeaveGroupResponse(error_code=0, members=members))


API = Api(
    LeaveGroupRequest,
    LeaveGroupResponse,
    leave_group,
    authorize=whole(READ_GROUP, of_group),
    entries=(Entries("members", "members"),),
)
