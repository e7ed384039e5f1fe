"""SyncGroup (14): distributes the assignments of a generation, which the leader sends, to all members.

v1 adds the throttle time, v3 static members (KIP-345), v4 is flexible, v5 checks the protocol's type and name
(KIP-559). The answer comes when the leader's assignments are written.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id, client_of
from broker.dispatch.rules import of_group, whole
from broker.request.authorisation import READ_GROUP
from coordinator.group import requests
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.schema import since

FIRST_PROTOCOL_VERSION = since(SyncGroupRequest, "protocol_type")


async def sync_group(call: Call[SyncGroupRequest]) -> SyncGroupResponse:
    request = call.request
    named = request.protocol_type is not None and request.protocol_name is not None
    if call.version >= FIRST_PROTOCOL_VERSION and not named:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    check_group_id(request.group_id)
    return await call.broker.groups.submit(request.group_id, requests.sync_group, request, client_of(call))


API = Api(SyncGroupRequest, SyncGroupResponse, sync_group, authorize=whole(READ_GROUP, of_group))
