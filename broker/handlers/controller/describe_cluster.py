"""DescribeCluster (60): describes the quorum's controllers, on their listener (KIP-919).

v1 selects brokers or controllers; this listener has only controllers. v2 may include fenced brokers (KIP-1073).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.dispatch.operations import cluster_operations
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from coordinator.cluster.brokers.activation import CONTROLLER_REGISTRATION_VERSION
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2
TOO_OLD = "Direct-to-controller communication is not supported with the current MetadataVersion."
MISMATCHED = "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"


async def describe_cluster(call: Call[DescribeClusterRequest]) -> DescribeClusterResponse:
    request, image = call.request, call.host.image
    if image.metadata_version < CONTROLLER_REGISTRATION_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, TOO_OLD)
    if request.endpoint_type == BROKERS:
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, MISMATCHED)
    if request.endpoint_type != CONTROLLERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    controllers = [
        DescribeClusterBroker(broker_id=controller.controller_id, host=endpoint.host, port=endpoint.port)
        for controller in image.controllers.values()
        for endpoint in controller.endpoints
        if endpoint.name == call.context.listener
    ]
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=CONTROLLERS,
        cluster_id=image.cluster_id,
        controller_id=call.host.quorum.leader_id,
        brokers=controllers,
        cluster_authorized_operations=cluster_operations(call, request.include_cluster_authorized_operations),
    )


API = Api(DescribeClusterRequest, DescribeClusterResponse, describe_cluster, authorize=whole(ALTER_CLUSTER))
