"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, leaves, resubscribes or stays alive (KIP-848).

v1 adds subscriptions by pattern, and members generate their own ids (KIP-1082).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.group_access import MEMBER
from broker.requests.group_client import limited_client_of
from coordinator.group.consumer.heartbeat import heartbeat
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.requests.broker import Broker

PROTOCOL = "consumer"
FEATURE = "group.version"


async def consumer_group_heartbeat(call: Call[ConsumerGroupHeartbeatRequest]) -> ConsumerGroupHeartbeatResponse:
    request = call.request
    try:
        check_enabled(call.broker)
        return await call.broker.groups.submit(request.group_id, heartbeat, request, limited_client_of(call))
    except KafkaError as error:
        return failed(error)


def check_enabled(broker: Broker) -> None:
    """Raises UNSUPPORTED_VERSION if the operator has not enabled the protocol, or the cluster has not finalized the
    feature."""
    if PROTOCOL not in broker.config.group_coordinator_rebalance_protocols or not broker.image.features.get(FEATURE):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def failed(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, member_epoch=0, heartbeat_interval_ms=0
    )


API = Api(ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, consumer_group_heartbeat, authorize=MEMBER)
