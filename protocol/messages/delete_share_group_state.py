"""DeleteShareGroupState (86)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.DELETE_SHARE_GROUP_STATE)
class DeleteShareGroupStateRequest:
    """Deletes the durable state of share partitions (KIP-932)."""

    group_id: str = wire()
    topics: list[DeleteStateData] = wire()


@struct
class DeleteStateData:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition: int32 = wire()


@message(ApiKey.DELETE_SHARE_GROUP_STATE)
class DeleteShareGroupStateResponse:
    """The error code for each share partition."""

    results: list[DeleteStateResult] = wire()


@struct
class DeleteStateResult:
    topic_id: uuid = wire()
    partitions: list[PartitionResult] = wire()


@struct
class PartitionResult:
    partition: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
