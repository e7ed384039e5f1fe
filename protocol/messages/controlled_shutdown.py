"""ControlledShutdown (7)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.CONTROLLED_SHUTDOWN)
class ControlledShutdownRequest:
    """A stopping broker asks a ZooKeeper-mode controller to move its leaderships away."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(versions="2+", default=-1)  # KIP-380


@message(ApiKey.CONTROLLED_SHUTDOWN)
class ControlledShutdownResponse:
    """The partitions that the broker still leads."""

    error_code: int16 = wire()
    remaining_partitions: list[RemainingPartition] = wire()


@struct
class RemainingPartition:
    topic_name: str = wire()
    partition_index: int32 = wire()
