"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, leaves, changes or just lives (KIP-848).

v1 adds subscriptions by pattern, and has members make their own ids (KIP-1082).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from broker.dispatch import Api, Call
from broker.handlers.group_client import answer, client_of
from coordinator.group.consumer_heartbeat import heartbeat
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

PROTOCOL = "consumer"


def consumer_group_heartbeat(
    call: Call[ConsumerGroupHeartbeatRequest],
) -> ConsumerGroupHeartbeatResponse | Coroutine[Any, Any, ConsumerGroupHeartbeatResponse]:
    request = call.request
    try:
        if PROTOCOL not in call.broker.config.group_coordinator_rebalance_protocols:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        asked = call.broker.groups.decide(request.group_id, heartbeat, request, client_of(call))
    except KafkaError as error:
        return refused(error)
    return answer(asked, lambda response: response, refused)


def refused(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, member_epoch=0, heartbeat_interval_ms=0
    )


API = Api(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, consumer_group_heartbeat)
