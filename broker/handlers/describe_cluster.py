"""DescribeCluster (60): describes the cluster: its id, its controller and its nodes (KIP-700).

v1 selects brokers or controllers (KIP-919): this is a broker's listener, which has no controllers;
v2 may include fenced brokers (KIP-1073).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.operations import cluster_operations
from broker.request.authorisation import inside
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2
MISMATCHED = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"


async def describe_cluster(call: Call[DescribeClusterRequest]) -> DescribeClusterResponse:
    request, image, listener = call.request, call.broker.image, call.context.listener
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, MISMATCHED)
    if request.endpoint_type != BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    brokers = [
        DescribeClusterBroker(
            broker_id=node.broker_id, host=endpoint.host, port=endpoint.port, rack=node.rack, is_fenced=node.fenced
        )
        for node in image.brokers.values()
        if (endpoint := node.endpoint(listener)) is not None and (request.include_fenced_brokers or not node.fenced)
    ]
    return DescribeClusterResponse(
        error_code=0,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(call, request.include_cluster_authorized_operations),
    )


API = Api(
    DescribeClusterRequest,
    DescribeClusterResponse,
    describe_cluster,
    authorize=inside("any client may see the nodes; the authorized operations are the client's own"),
)
