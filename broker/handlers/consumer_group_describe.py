"""ConsumerGroupDescribe (69): describes the epochs, members and assignments of consumer groups (KIP-848).

v1 adds the protocol that each member speaks (KIP-1099).
"""

from __future__ import annotations

from functools import partial

from broker.exchange.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, by_handler
from broker.handlers.consumer_group_heartbeat import check_enabled
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.group_client import client_of
from broker.requests.operations import group_operations
from coordinator.group.consumer.describe import describe
from coordinator.group.modern.describe import undescribed
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


async def consumer_group_describe(call: Call[ConsumerGroupDescribeRequest]) -> ConsumerGroupDescribeResponse:
    groups = await call.turns().map_awaited(partial(one_group, call), call.request.group_ids)
    return ConsumerGroupDescribeResponse(groups=groups)


async def one_group(call: Call[ConsumerGroupDescribeRequest], group_id: str) -> DescribedGroup:
    try:
        check_enabled(call.broker)
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = await call.broker.groups.decided(group_id, describe, group_id, client_of(call))
    except KafkaError as error:
        return undescribed(DescribedGroup, group_id, error)
    call.count(len(group.members))
    if not group.error_code:
        group.authorized_operations = group_operations(call.request.include_authorized_operations)
    return group


REQUIRES = by_handler(DESCRIBE_GROUP, DESCRIBE_TOPIC)
API = Api(ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, consumer_group_describe, REQUIRES)
