"""DescribeShareGroupRecords (19000), an API of Odradek's own."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid

NOT_IN_FLIGHT: Final = -2
"""The state of records that no member has fetched."""


class DeliveryReason(IntEnum):
    """Why records are not delivered now."""

    OFFERED = 0
    """They are: a fetch that waits gets them."""
    DONE = 1
    """They are acknowledged or archived."""
    HELD = 2
    """A member has acquired them, until its acquisition lock ends."""
    CHANGING = 3
    """The change of their state is being written."""
    BACKOFF = 4
    """The pause after their last delivery isn't over."""
    SCHEDULED = 5
    """Their delivery time has not come."""
    KEY_HELD = 6
    """A record of the same key is with a member, or waits itself."""
    BURYING = 7
    """Their dead letter is being written."""
    WINDOW_FULL = 8
    """The group has as many records of the partition in flight as it may have."""
    OPEN_TRANSACTION = 9
    """The group reads committed records only, and an earlier transaction is open."""
    UNREAD = 10
    """They have not been read since the share partition was loaded."""
    NO_MEMBER = 11
    """No member fetches from the partition."""
    NOT_FETCHED = 12
    """No fetch waits: the members have other records, and get these with a later fetch."""
    ABSENT = 13
    """The log doesn't have them any longer."""


@message(ApiKey.DESCRIBE_SHARE_GROUP_RECORDS)
class DescribeShareGroupRecordsRequest:
    """Requests the records of share partitions from the brokers that lead them: in flight, and after that."""

    group_id: str = wire()
    max_ranges: int32 = wire(default=1000)
    """Maximum number of ranges for each partition."""
    topics: list[DescribeShareGroupRecordsRequestTopic] = wire()


@struct
class DescribeShareGroupRecordsRequestTopic:
    topic_name: str = wire()
    partitions: list[DescribeShareGroupRecordsRequestPartition] = wire()


@struct
class DescribeShareGroupRecordsRequestPartition:
    partition_index: int32 = wire()
    first_offset: int64 = wire(default=-1)
    """The first offset to describe; below the start offset it means the start offset."""


@message(ApiKey.DESCRIBE_SHARE_GROUP_RECORDS)
class DescribeShareGroupRecordsResponse:
    """The records of share partitions as ranges, and the group's options on which their delivery depends."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
    now_ms: int64 = wire()
    """The broker's time, with which the times of the ranges are compared."""
    max_delivery_count: int32 = wire()
    max_in_flight_records: int32 = wire()
    lock_duration_ms: int32 = wire()
    isolation_level: int8 = wire()
    is_ordered_by_key: bool = wire()
    topics: list[DescribeShareGroupRecordsResponseTopic] = wire()


@struct
class DescribeShareGroupRecordsResponseTopic:
    topic_name: str = wire()
    topic_id: uuid = wire()
    partitions: list[DescribeShareGroupRecordsResponsePartition] = wire()


@struct
class DescribeShareGroupRecordsResponsePartition:
    """A share partition. It has ranges only if it is active: else no member has fetched from it since this broker leads
    the partition, or the last member is gone, or it is loading. Then only the share coordinator has its state."""

    partition_index: int32 = wire()
    error_code: int16 = wire(default=0)
    error_message: str | None = wire(nullable="0+", default=None)
    is_active: bool = wire(default=False)
    leader_epoch: int32 = wire(default=-1)
    log_start_offset: int64 = wire(default=-1)
    high_watermark: int64 = wire(default=-1)
    last_stable_offset: int64 = wire(default=-1)
    start_offset: int64 = wire(default=-1)
    end_offset: int64 = wire(default=-1)
    """The last offset in flight; below the start offset if no record is in flight."""
    session_count: int32 = wire(default=0)
    """Share sessions that have the partition."""
    waiting_count: int32 = wire(default=0)
    """Share fetches that wait for records of the partition."""
    ranges: list[RecordRange] = wire()
    next_offset: int64 = wire(default=-1)
    """The offset from which to request the following ranges; -1 if there are none."""


@struct
class RecordRange:
    """Consecutive offsets with the same state, member, times and reason."""

    first_offset: int64 = wire()
    last_offset: int64 = wire()
    delivery_state: int8 = wire()
    """0 available, 1 acquired, 2 acknowledged, 3 archiving, 4 archived; -1 delayed; NOT_IN_FLIGHT."""
    delivery_count: int16 = wire(default=0)
    member_id: str | None = wire(nullable="0+", default=None)
    """The member that has acquired the records."""
    until_ms: int64 = wire(default=-1)
    """The end of the member's lock, or of the delay."""
    waits_for: int64 = wire(default=-1)
    """The offset of a record with the same key, for which these records wait."""
    reason: int8 = wire()
    """A DeliveryReason, by number."""
