"""The guards of the state of share groups, which brokers keep among themselves: CLUSTER_ACTION on the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER
from broker.requests.api import Guard, Handle
from broker.requests.call import Call
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import delete_share_group_state as delete
from protocol.messages import initialize_share_group_state as initialize
from protocol.messages import read_share_group_state as read
from protocol.messages import read_share_group_state_summary as summary
from protocol.messages import write_share_group_state as write
from protocol.types import Uuid

DENIED: Final = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class RequestedPartition(Protocol):
    """A partition of a request."""

    partition: int


class RequestedTopic(Protocol):
    """A topic of a request."""

    topic_id: Uuid

    @property
    def partitions(self) -> Sequence[RequestedPartition]: ...


class OfStates(Protocol):
    """A request about the state of share partitions."""

    @property
    def topics(self) -> Sequence[RequestedTopic]: ...


def guarded(
    response: Callable[..., object], result: Callable[..., object], partition_result: Callable[..., object],
    **nothing: object,
) -> Guard:  # fmt: skip
    """Returns a guard that refuses each partition of a request. `nothing` are the fields of a partition's result that
    has no state to tell."""

    async def guard(call: Call[OfStates], handle: Handle) -> object:
        if call.may(CLUSTER_ACTION_CLUSTER):
            return await handle(call)
        return response(results=await call.turns().map(failed_topic, call.request.topics))

    def failed_topic(topic: RequestedTopic) -> object:
        return result(topic_id=topic.topic_id, partitions=[failed_partition(one.partition) for one in topic.partitions])

    def failed_partition(index: int) -> object:
        return partition_result(partition=index, error_code=DENIED.code, error_message=DENIED.message, **nothing)

    return guard


initialize_share_group_state: Final = guarded(
    initialize.InitializeShareGroupStateResponse, initialize.InitializeStateResult, initialize.PartitionResult
)
read_share_group_state: Final = guarded(
    read.ReadShareGroupStateResponse, read.ReadStateResult, read.PartitionResult,
    state_epoch=0, start_offset=0, state_batches=(),
)  # fmt: skip
write_share_group_state: Final = guarded(
    write.WriteShareGroupStateResponse, write.WriteStateResult, write.PartitionResult
)
delete_share_group_state: Final = guarded(
    delete.DeleteShareGroupStateResponse, delete.DeleteStateResult, delete.PartitionResult
)
read_share_group_state_summary: Final = guarded(
    summary.ReadShareGroupStateSummaryResponse, summary.ReadStateSummaryResult, summary.PartitionResult,
    state_epoch=0, leader_epoch=0, start_offset=0,
)  # fmt: skip
