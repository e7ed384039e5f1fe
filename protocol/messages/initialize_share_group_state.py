"""InitializeShareGroupState (83)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.INITIALIZE_SHARE_GROUP_STATE)
class InitializeShareGroupStateRequest:
    """Creates the durable state of share partitions, at a state epoch and start offset (KIP-932)."""

    group_id: str = wire()
    topics: list[InitializeStateData] = wire()


@struct
class InitializeStateData:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    """A share partition's first state. With start offset -1 the group's reset strategy decides."""

    partition: int32 = wire()
    state_epoch: int32 = wire()
    start_offset: int64 = wire()


@message(ApiKey.INITIALIZE_SHARE_GROUP_STATE)
class InitializeShareGroupStateResponse:
    """The error code for each share partition."""

    results: list[InitializeStateResult] = wire()


@struct
class InitializeStateResult:
    topic_id: uuid = wire()
    partitions: list[PartitionResult] = wire()


@struct
class PartitionResult:
    partition: int32 = wire()
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
