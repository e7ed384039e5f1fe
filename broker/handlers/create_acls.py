"""CreateAcls (30): adds access control entries.

v1 adds prefixed patterns (KIP-290), v2 is flexible, v3 user resources (KIP-373). There is no authorizer: each entry is
refused, as Apache Kafka does without one.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

NO_AUTHORIZER = "No Authorizer is configured."


async def create_acls(call: HostCall[CreateAclsRequest]) -> CreateAclsResponse:
    result = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[result] * len(call.request.creations))


API = Api(CreateAclsRequest, CreateAclsResponse, create_acls, of_cluster(ALTER_CLUSTER))
