"""DescribeAcls (29): describes the access control entries that match a filter.

v1 adds prefixed patterns (KIP-290), v2 is flexible, v3 user resources (KIP-373). Without an authorizer the answer is an
error, as in Apache Kafka.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import DESCRIBE_CLUSTER
from coordinator.cluster.security.acl_requests import DescribedAcls
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER = "No Authorizer is configured on the broker"


async def describe_acls(call: Call[DescribeAclsRequest]) -> DescribeAclsResponse:
    if call.host.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    described = DescribedAcls(call.request, call.version)
    call.announce(sum(await call.turns().map(described.add, list(call.host.image.acls))))
    return described.response


API = Api(DescribeAclsRequest, DescribeAclsResponse, describe_acls, authorize=whole(DESCRIBE_CLUSTER))
