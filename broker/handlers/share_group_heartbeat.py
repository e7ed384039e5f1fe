"""ShareGroupHeartbeat (76): a member of a share group joins, leaves, changes or just lives (KIP-932).

v1 is the first that stays. A group that reads a partition for the first time has state made for it, after the answer.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from broker.coordinators.asking import answer, client_of
from broker.dispatch import Api, Call
from coordinator.group.share_heartbeat import Heard, heartbeat
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def share_group_heartbeat(
    call: Call[ShareGroupHeartbeatRequest],
) -> ShareGroupHeartbeatResponse | Coroutine[Any, Any, ShareGroupHeartbeatResponse]:
    request = call.request

    def respond(heard: Heard) -> ShareGroupHeartbeatResponse:
        if heard.initialize is not None:
            call.broker.share_groups.initialize_later(heard.initialize)
        return heard.response

    try:
        if not call.broker.share_groups.is_enabled:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        asked = call.broker.groups.decide(request.group_id, heartbeat, request, client_of(call))
    except KafkaError as error:
        return refused(error)
    return answer(asked, respond, refused)


def refused(error: KafkaError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, member_epoch=0, heartbeat_interval_ms=0
    )


API = Api(ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, share_group_heartbeat)
