"""ElectLeaders (43)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.ELECT_LEADERS)
class ElectLeadersRequest:
    """Elects preferred or unclean leaders. Null partitions request all."""

    election_type: int8 = wire(versions="1+", default=0)  # KIP-460
    topic_partitions: list[TopicPartitions] | None = wire(nullable="0+")
    timeout_ms: int32 = wire(default=60000)


@struct
class TopicPartitions:
    """Partitions of a topic to elect leaders of."""

    topic: str = wire()
    partitions: list[int32] = wire()


@message(ApiKey.ELECT_LEADERS)
class ElectLeadersResponse:
    """The error code of each election."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire(versions="1+", default=0)  # KIP-460
    replica_election_results: list[ReplicaElectionResult] = wire()


@struct
class ReplicaElectionResult:
    topic: str = wire()
    partition_result: list[PartitionResult] = wire()


@struct
class PartitionResult:
    partition_id: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
