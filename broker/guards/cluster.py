"""The guards of what is told about the cluster: answers are shorter for those who may not describe it."""

from __future__ import annotations

from broker.exchange.authorisation import DESCRIBE_CLUSTER
from broker.guards.operations import NOT_REQUESTED, cluster_operations
from broker.requests.api import Handle
from broker.requests.call import Call, HostCall
from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


async def describe_cluster(call: HostCall[DescribeClusterRequest], handle: Handle) -> DescribeClusterResponse:
    """Tells everybody the nodes, and each what it may do."""
    response: DescribeClusterResponse = await handle(call)
    if response.cluster_authorized_operations != NOT_REQUESTED:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


async def describe_log_dirs(call: Call[DescribeLogDirsRequest], handle: Handle) -> DescribeLogDirsResponse:
    """Describes no directory to who may not describe the cluster."""
    if not call.may(DESCRIBE_CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[])
    response: DescribeLogDirsResponse = await handle(call)
    return response
