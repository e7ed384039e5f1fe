"""AlterReplicaLogDirs (34)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32


@message(ApiKey.ALTER_REPLICA_LOG_DIRS)
class AlterReplicaLogDirsRequest:
    """Moves replicas between the log directories of one broker."""

    dirs: list[AlterReplicaLogDir] = wire()


@struct
class AlterReplicaLogDir:
    """The absolute path of a log directory, and the replicas to move there."""

    path: str = wire()
    topics: list[AlterReplicaLogDirTopic] = wire()


@struct
class AlterReplicaLogDirTopic:
    name: str = wire()
    partitions: list[int32] = wire()


@message(ApiKey.ALTER_REPLICA_LOG_DIRS)
class AlterReplicaLogDirsResponse:
    """The error code for each move."""

    throttle_time_ms: int32 = wire(default=0)
    results: list[AlterReplicaLogDirTopicResult] = wire()


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = wire()
    partitions: list[AlterReplicaLogDirPartitionResult] = wire()


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int32 = wire()
    error_code: int16 = wire()
