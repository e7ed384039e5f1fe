"""LeaderAndIsr (4)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int8, int16, int32, int64, uuid


@message(ApiKey.LEADER_AND_ISR)
class LeaderAndIsrRequest:
    """A ZooKeeper-mode controller tells a broker which partitions to lead and to follow."""

    controller_id: int32 = wire()
    is_k_raft_controller: bool = wire(versions="7+", default=False)  # KIP-866
    controller_epoch: int32 = wire()
    broker_epoch: int64 = wire(versions="2+", default=-1)  # KIP-380
    type: int8 = wire(versions="5+", default=0)  # KIP-516
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = wire(versions="0-1", default=IMPLICIT)
    topic_states: list[LeaderAndIsrTopicState] = wire(versions="2+", default=IMPLICIT)  # KIP-380
    live_leaders: list[LeaderAndIsrLiveLeader] = wire()


@struct
class LeaderAndIsrPartitionState:
    topic_name: str = wire(versions="0-1", default="")
    partition_index: int32 = wire()
    controller_epoch: int32 = wire()
    leader: int32 = wire()
    leader_epoch: int32 = wire()
    isr: list[int32] = wire()
    partition_epoch: int32 = wire()
    replicas: list[int32] = wire()
    adding_replicas: list[int32] = wire(versions="3+", default=IMPLICIT)  # KIP-455
    removing_replicas: list[int32] = wire(versions="3+", default=IMPLICIT)  # KIP-455
    is_new: bool = wire(versions="1+", default=False)
    leader_recovery_state: int8 = wire(versions="6+", default=0)  # KIP-704


@struct
class LeaderAndIsrTopicState:
    topic_name: str = wire()
    topic_id: uuid = wire(versions="5+", default=IMPLICIT)  # KIP-516
    partition_states: list[LeaderAndIsrPartitionState] = wire()


@struct
class LeaderAndIsrLiveLeader:
    broker_id: int32 = wire()
    host_name: str = wire()
    port: int32 = wire()


@message(ApiKey.LEADER_AND_ISR)
class LeaderAndIsrResponse:
    """The error code for each partition."""

    error_code: int16 = wire()
    partition_errors: list[LeaderAndIsrPartitionError] = wire(versions="0-4", default=IMPLICIT)
    topics: list[LeaderAndIsrTopicError] = wire(versions="5+", default=IMPLICIT)  # KIP-516


@struct
class LeaderAndIsrPartitionError:
    topic_name: str = wire(versions="0-4", default="")
    partition_index: int32 = wire()
    error_code: int16 = wire()


@struct
class LeaderAndIsrTopicError:
    topic_id: uuid = wire()
    partition_errors: list[LeaderAndIsrPartitionError] = wire()
