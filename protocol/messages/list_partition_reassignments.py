"""ListPartitionReassignments (46)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS)
class ListPartitionReassignmentsRequest:
    """Requests ongoing reassignments. Null topics request all."""

    timeout_ms: int32 = wire(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(nullable="0+", default=None)


@struct
class ListPartitionReassignmentsTopics:
    name: str = wire()
    partition_indexes: list[int32] = wire()


@message(ApiKey.LIST_PARTITION_REASSIGNMENTS)
class ListPartitionReassignmentsResponse:
    """Current, added and removed replicas of each reassignment."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
    topics: list[OngoingTopicReassignment] = wire()


@struct
class OngoingTopicReassignment:
    name: str = wire()
    partitions: list[OngoingPartitionReassignment] = wire()


@struct
class OngoingPartitionReassignment:
    """All current replicas, the added replicas, and the replicas to remove."""

    partition_index: int32 = wire()
    replicas: list[int32] = wire()
    adding_replicas: list[int32] = wire()
    removing_replicas: list[int32] = wire()
