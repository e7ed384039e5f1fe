"""AlterPartitionReassignments (45)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
class AlterPartitionReassignmentsRequest:
    """Starts reassignments of replicas, or cancels them with null replicas (KIP-455)."""

    timeout_ms: int32 = wire(default=60000)
    allow_replication_factor_change: bool = wire(versions="1+", default=True)  # KIP-860
    topics: list[ReassignableTopic] = wire()


@struct
class ReassignableTopic:
    name: str = wire()
    partitions: list[ReassignablePartition] = wire()


@struct
class ReassignablePartition:
    """The target replicas, preferred leader first. Null cancels a reassignment."""

    partition_index: int32 = wire()
    replicas: list[int32] | None = wire(nullable="0+", default=None)


@message(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
class AlterPartitionReassignmentsResponse:
    """The error code for each reassignment."""

    throttle_time_ms: int32 = wire(default=0)
    allow_replication_factor_change: bool = wire(versions="1+", default=True)  # KIP-860
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    responses: list[ReassignableTopicResponse] = wire()


@struct
class ReassignableTopicResponse:
    name: str = wire()
    partitions: list[ReassignablePartitionResponse] = wire()


@struct
class ReassignablePartitionResponse:
    partition_index: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
