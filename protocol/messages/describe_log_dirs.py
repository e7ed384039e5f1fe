"""DescribeLogDirs (35)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.DESCRIBE_LOG_DIRS)
class DescribeLogDirsRequest:
    """Requests the contents of a broker's log directories. Null topics request all."""

    topics: list[DescribableLogDirTopic] | None = wire(nullable="0+")


@struct
class DescribableLogDirTopic:
    topic: str = wire()
    partitions: list[int32] = wire()


@message(ApiKey.DESCRIBE_LOG_DIRS)
class DescribeLogDirsResponse:
    """Sizes and lags by log directory, topic and partition."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire(versions="3+", default=0)  # KIP-784
    results: list[DescribeLogDirsResult] = wire()


@struct
class DescribeLogDirsResult:
    """A log directory. Sizes of its volume are in bytes, -1 if unknown."""

    error_code: int16 = wire()
    log_dir: str = wire()
    topics: list[DescribeLogDirsTopic] = wire()
    total_bytes: int64 = wire(versions="4+", default=-1)  # KIP-827
    usable_bytes: int64 = wire(versions="4+", default=-1)  # KIP-827
    is_cordoned: bool = wire(versions="5+", default=False)  # KIP-1066


@struct
class DescribeLogDirsTopic:
    name: str = wire()
    partitions: list[DescribeLogDirsPartition] = wire()


@struct
class DescribeLogDirsPartition:
    """A replica. `offset_lag` is its lag behind the high watermark, or a future replica's behind the current
    replica."""

    partition_index: int32 = wire()
    partition_size: int64 = wire()
    offset_lag: int64 = wire()
    is_future_key: bool = wire()
