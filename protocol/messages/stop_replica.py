"""StopReplica (5)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, int64


@message(ApiKey.STOP_REPLICA)
class StopReplicaRequest:
    """A ZooKeeper-mode controller tells a broker to stop, or stop and delete, replicas."""

    controller_id: int32 = wire()
    is_k_raft_controller: bool = wire(versions="4+", default=False)  # KIP-866
    controller_epoch: int32 = wire()
    broker_epoch: int64 = wire(versions="1+", default=-1)  # KIP-380
    delete_partitions: bool = wire(versions="0-2", default=False)
    ungrouped_partitions: list[StopReplicaPartitionV0] = wire(versions="0", default=IMPLICIT)
    topics: list[StopReplicaTopicV1] = wire(versions="1-2", default=IMPLICIT)  # KIP-380
    topic_states: list[StopReplicaTopicState] = wire(versions="3+", default=IMPLICIT)  # KIP-570


@struct
class StopReplicaPartitionV0:
    topic_name: str = wire()
    partition_index: int32 = wire()


@struct
class StopReplicaTopicV1:
    name: str = wire()
    partition_indexes: list[int32] = wire()


@struct
class StopReplicaTopicState:
    topic_name: str = wire()
    partition_states: list[StopReplicaPartitionState] = wire()


@struct
class StopReplicaPartitionState:
    """A replica to stop. Leader epoch: -1 unknown, -2 topic is being deleted."""

    partition_index: int32 = wire()
    leader_epoch: int32 = wire(default=-1)
    delete_partition: bool = wire()


@message(ApiKey.STOP_REPLICA)
class StopReplicaResponse:
    """The error code for each replica."""

    error_code: int16 = wire()
    partition_errors: list[StopReplicaPartitionError] = wire()


@struct
class StopReplicaPartitionError:
    topic_name: str = wire()
    partition_index: int32 = wire()
    error_code: int16 = wire()
