"""CreateAcls (30): adds access control entries.

v1 adds prefixed patterns (KIP-290), v2 is flexible, v3 user resources (KIP-373). Without an authorizer each entry is
rejected, as in Apache Kafka.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse

NO_AUTHORIZER = "No Authorizer is configured."


async def create_acls(call: Call[CreateAclsRequest]) -> object:
    if call.host.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return await call.by_controller()


API = Api(CreateAclsRequest, CreateAclsResponse, create_acls, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER))
