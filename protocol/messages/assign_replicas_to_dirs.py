"""AssignReplicasToDirs (73)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, int64, uuid


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
class AssignReplicasToDirsRequest:
    """A broker reports the log directories of its replicas to the controller (KIP-858)."""

    broker_id: int32 = wire()
    broker_epoch: int64 = wire(default=-1)
    directories: list[DirectoryData] = wire()


@struct
class DirectoryData:
    """A log directory by its id, and the replicas in it."""

    id: uuid = wire()
    topics: list[TopicData] = wire()


@struct
class TopicData:
    topic_id: uuid = wire()
    partitions: list[PartitionData] = wire()


@struct
class PartitionData:
    partition_index: int32 = wire()


@message(ApiKey.ASSIGN_REPLICAS_TO_DIRS)
class AssignReplicasToDirsResponse:
    """The error code for each assignment."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    directories: list[ResponseDirectoryData] = wire()


@struct
class ResponseDirectoryData:
    """A log directory by its id, and the replicas in it."""

    id: uuid = wire()
    topics: list[ResponseTopicData] = wire()


@struct
class ResponseTopicData:
    topic_id: uuid = wire()
    partitions: list[ResponsePartitionData] = wire()


@struct
class ResponsePartitionData:
    partition_index: int32 = wire()
    error_code: int16 = wire()
