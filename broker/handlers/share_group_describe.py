"""ShareGroupDescribe (77): describes the epochs, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from functools import partial

from broker.exchange.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, by_handler
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.group_client import client_of
from broker.requests.operations import group_operations
from coordinator.group.modern.describe import undescribed
from coordinator.group.share.describe import describe
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


async def share_group_describe(call: Call[ShareGroupDescribeRequest]) -> ShareGroupDescribeResponse:
    groups = await call.turns().map_awaited(partial(one_group, call), call.request.group_ids)
    return ShareGroupDescribeResponse(groups=groups)


async def one_group(call: Call[ShareGroupDescribeRequest], group_id: str) -> DescribedGroup:
    try:
        if not call.broker.share_groups.is_enabled:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
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
API = Api(ShareGroupDescribeRequest, ShareGroupDescribeResponse, share_group_describe, REQUIRES)
