"""DeleteAcls (31): deletes the access control entries that match filters.

v1 adds prefixed patterns (KIP-290), v2 is flexible, v3 user resources (KIP-373). Without an authorizer each filter is
rejected, as in Apache Kafka.
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.handlers.create_acls import NO_AUTHORIZER
from broker.request.authorisation import ALTER_CLUSTER
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse


async def delete_acls(call: Call[DeleteAclsRequest]) -> object:
    if call.host.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return await call.by_controller()


API = Api(DeleteAclsRequest, DeleteAclsResponse, delete_acls, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER))
