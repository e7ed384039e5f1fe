"""DescribeCluster (60)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.DESCRIBE_CLUSTER)
class DescribeClusterRequest:
    """Requests the cluster id and its brokers, or its controllers (KIP-700, KIP-919)."""

    include_cluster_authorized_operations: bool = wire()
    endpoint_type: int8 = wire(versions="1+", default=1)  # KIP-919
    include_fenced_brokers: bool = wire(versions="2+", default=False)  # KIP-1073


@message(ApiKey.DESCRIBE_CLUSTER)
class DescribeClusterResponse:
    """Cluster id, controller, and the endpoints of the nodes."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    endpoint_type: int8 = wire(versions="1+", default=1)  # KIP-919
    cluster_id: str = wire()
    controller_id: int32 = wire(default=-1)
    brokers: list[DescribeClusterBroker] = wire()
    cluster_authorized_operations: int32 = wire(default=-0x80000000)


@struct
class DescribeClusterBroker:
    broker_id: int32 = wire()
    host: str = wire()
    port: int32 = wire()
    rack: str | None = wire(nullable="0+", default=None)
    is_fenced: bool = wire(versions="2+", default=False)  # KIP-1073
