"""Heartbeat (12): keeps a member of a classic group alive, and informs it about a rebalance.

v1 adds the throttle time, v3 static members (KIP-345), v4 is flexible. While the group loads, heartbeats
succeed: sessions begin again after that.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.group_client import check_group_id, client_of
from broker.dispatch.rules import of_group, whole
from broker.request.authorisation import READ_GROUP
from broker.shards.translations import CLASSIC_HEARTBEATS, translated
from coordinator.group import requests
from protocol.errors import KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def heartbeat(call: Call[HeartbeatRequest]) -> HeartbeatResponse:
    request = call.request
    check_group_id(request.group_id)
    return await call.broker.groups.submit(request.group_id, requests.heartbeat, request, client_of(call))


API = Api(
    HeartbeatRequest,
    HeartbeatResponse,
    heartbeat,
    authorize=whole(READ_GROUP, of_group),
    translate=lambda error, _: KafkaError(translated(error.code, CLASSIC_HEARTBEATS)),
)
