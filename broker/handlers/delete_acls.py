"""DeleteAcls (31): deletes the access control entries that match filters.

v1 adds prefixed patterns (KIP-290), v2 is flexible, v3 user resources (KIP-373). There is no authorizer: each filter is
refused, as Apache Kafka does without one.
"""

from __future__ import annotations

from broker.exchange.authorisation import ALTER_CLUSTER, of_cluster
from broker.handlers.create_acls import NO_AUTHORIZER
from broker.requests.api import Api
from broker.requests.call import HostCall
from protocol.errors import ErrorCode
from protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


async def delete_acls(call: HostCall[DeleteAclsRequest]) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=[]
    )  # fmt: skip
    return DeleteAclsResponse(filter_results=[result] * len(call.request.filters))


API = Api(DeleteAclsRequest, DeleteAclsResponse, delete_acls, of_cluster(ALTER_CLUSTER))
