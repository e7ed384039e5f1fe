"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, leaves, resubscribes or stays alive (KIP-848).

v1 adds subscriptions by pattern, and members generate their own ids (KIP-1082).
"""

from __future__ import annotations

from typing import Final

from broker.dispatch.api import CONSUMER_GROUPS, Api
from broker.dispatch.call import Call
from broker.dispatch.group_client import limited_client_of
from broker.dispatch.rules import every, in_order, of_group, whole
from broker.request.authorisation import DESCRIBE_TOPIC, READ_GROUP
from coordinator.group.consumer.heartbeat import heartbeat
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


async def consumer_group_heartbeat(call: Call[ConsumerGroupHeartbeatRequest]) -> ConsumerGroupHeartbeatResponse:
    return await call.broker.groups.submit(call.request.group_id, heartbeat, call.request, limited_client_of(call))


MEMBER: Final = in_order(
    whole(READ_GROUP, of_group),
    every(DESCRIBE_TOPIC, lambda request: request.subscribed_topic_names or ()),
)
"""The rule of a member's heartbeat, in share groups too. The client needs DESCRIBE on the topics to which the member
subscribes."""

API = Api(
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    consumer_group_heartbeat,
    authorize=MEMBER,
    protocol=CONSUMER_GROUPS,
    explains=True,
)
