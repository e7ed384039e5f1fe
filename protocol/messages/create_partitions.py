"""CreatePartitions (37)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.CREATE_PARTITIONS)
class CreatePartitionsRequest:
    """Adds partitions to topics, with or without an assignment of replicas."""

    topics: list[CreatePartitionsTopic] = wire()
    timeout_ms: int32 = wire()
    validate_only: bool = wire()


@struct
class CreatePartitionsTopic:
    """A topic and its new number of partitions. With null assignments the broker places the replicas."""

    name: str = wire()
    count: int32 = wire()
    assignments: list[CreatePartitionsAssignment] | None = wire(nullable="0+")


@struct
class CreatePartitionsAssignment:
    """The replicas of a new partition, preferred leader first."""

    broker_ids: list[int32] = wire()


@message(ApiKey.CREATE_PARTITIONS)
class CreatePartitionsResponse:
    """The error code for each topic."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[CreatePartitionsTopicResult] = wire()


@struct
class CreatePartitionsTopicResult:
    name: str = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
