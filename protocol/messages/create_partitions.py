"""CreatePartitions (37)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Raises topics' partition counts, with replicas placed by hand or not."""

    topics: list[CreatePartitionsTopic] = wire()
    timeout_ms: int32 = wire()
    validate_only: bool = wire()


@struct
class CreatePartitionsTopic:
    """A topic and its new total of partitions; null assignments leave the placing to the broker."""

    name: str = wire()
    count: int32 = wire()
    assignments: list[CreatePartitionsAssignment] | None = wire(nullable="0+")


@struct
class CreatePartitionsAssignment:
    """Replicas of one new partition, preferred leader first."""

    broker_ids: list[int32] = wire()


@message(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """Whether each topic was extended."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[CreatePartitionsTopicResult] = wire()


@struct
class CreatePartitionsTopicResult:
    name: str = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
