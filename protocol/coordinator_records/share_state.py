"""Share partitions in __share_group_state."""

from __future__ import annotations

from protocol.schema import struct, versioned, wire
from protocol.types import int8, int16, int32, int64, uuid


@versioned(0, versions="0")
class ShareSnapshotKey:
    """The key of a share partition's snapshot."""

    group_id: str = wire()
    topic_id: uuid = wire()
    partition: int32 = wire()


@versioned(0, versions="0", flexible="0+")
class ShareSnapshotValue:
    """A share partition's whole state. Updates with the same snapshot epoch apply to it."""

    snapshot_epoch: int32 = wire()
    state_epoch: int32 = wire()
    leader_epoch: int32 = wire()
    start_offset: int64 = wire()
    delivery_complete_count: int32 = wire(tag=0, default=-1)  # KIP-1226
    create_timestamp: int64 = wire()
    write_timestamp: int64 = wire()
    state_batches: list[StateBatch] = wire()


@struct
class StateBatch:
    """A range of records; state 0 available, 2 acknowledged, 4 archived."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    delivery_state: int8 = wire()
    delivery_count: int16 = wire()


@versioned(1, versions="0")
class ShareUpdateKey:
    """The key of a change to a share partition."""

    group_id: str = wire()
    topic_id: uuid = wire()
    partition: int32 = wire()


@versioned(1, versions="0", flexible="0+")
class ShareUpdateValue:
    """Changes to a share partition's state. Start offset -1 means no change."""

    snapshot_epoch: int32 = wire()
    leader_epoch: int32 = wire()
    start_offset: int64 = wire()
    delivery_complete_count: int32 = wire(tag=0, default=-1)  # KIP-1226
    state_batches: list[StateBatch] = wire()
