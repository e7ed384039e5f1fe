"""The guards of the state of share groups, which brokers keep among themselves: CLUSTER_ACTION on the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from broker.exchange.authorisation import CLUSTER_ACTION_CLUSTER
from broker.requests.api import Handle
from broker.requests.call import Call
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import delete_share_group_state as delete
from protocol.messages import initialize_share_group_state as initialize
from protocol.messages import read_share_group_state as read
from protocol.messages import read_share_group_state_summary as summary
from protocol.messages import write_share_group_state as write
from protocol.types import Uuid

DENIED: Final = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
CODE: Final = DENIED.code
MESSAGE: Final = DENIED.message

Q = TypeVar("Q")
R = TypeVar("R")
P = TypeVar("P")


class RequestedPartition(Protocol):
    """A partition of a request."""

    partition: int


class RequestedTopic(Protocol):
    """A topic of a request."""

    topic_id: Uuid

    @property
    def partitions(self) -> Sequence[RequestedPartition]: ...


def refusals(
    topics: Sequence[RequestedTopic], result: Callable[[Uuid, list[P]], R], partition_result: Callable[[int], P]
) -> list[R]:
    """Returns the results of topics, each of whose partitions is refused."""
    return [result(topic.topic_id, [partition_result(one.partition) for one in topic.partitions]) for topic in topics]


async def initialize_share_group_state(
    call: Call[initialize.InitializeShareGroupStateRequest], handle: Handle
) -> initialize.InitializeShareGroupStateResponse:
    if call.may(CLUSTER_ACTION_CLUSTER):
        response: initialize.InitializeShareGroupStateResponse = await handle(call)
        return response
    results = refusals(
        call.request.topics,
        lambda topic_id, partitions: initialize.InitializeStateResult(topic_id=topic_id, partitions=partitions),
        lambda index: initialize.PartitionResult(partition=index, error_code=CODE, error_message=MESSAGE),
    )
    return initialize.InitializeShareGroupStateResponse(results=results)


async def read_share_group_state(
    call: Call[read.ReadShareGroupStateRequest], handle: Handle
) -> read.ReadShareGroupStateResponse:
    if call.may(CLUSTER_ACTION_CLUSTER):
        response: read.ReadShareGroupStateResponse = await handle(call)
        return response
    results = refusals(
        call.request.topics,
        lambda topic_id, partitions: read.ReadStateResult(topic_id=topic_id, partitions=partitions),
        lambda index: read.PartitionResult(
            partition=index, error_code=CODE, error_message=MESSAGE, state_epoch=0, start_offset=0, state_batches=[]
        ),
    )
    return read.ReadShareGroupStateResponse(results=results)


async def write_share_group_state(
    call: Call[write.WriteShareGroupStateRequest], handle: Handle
) -> write.WriteShareGroupStateResponse:
    if call.may(CLUSTER_ACTION_CLUSTER):
        response: write.WriteShareGroupStateResponse = await handle(call)
        return response
    results = refusals(
        call.request.topics,
        lambda topic_id, partitions: write.WriteStateResult(topic_id=topic_id, partitions=partitions),
        lambda index: write.PartitionResult(partition=index, error_code=CODE, error_message=MESSAGE),
    )
    return write.WriteShareGroupStateResponse(results=results)


async def delete_share_group_state(
    call: Call[delete.DeleteShareGroupStateRequest], handle: Handle
) -> delete.DeleteShareGroupStateResponse:
    if call.may(CLUSTER_ACTION_CLUSTER):
        response: delete.DeleteShareGroupStateResponse = await handle(call)
        return response
    results = refusals(
        call.request.topics,
        lambda topic_id, partitions: delete.DeleteStateResult(topic_id=topic_id, partitions=partitions),
        lambda index: delete.PartitionResult(partition=index, error_code=CODE, error_message=MESSAGE),
    )
    return delete.DeleteShareGroupStateResponse(results=results)


async def read_share_group_state_summary(
    call: Call[summary.ReadShareGroupStateSummaryRequest], handle: Handle
) -> summary.ReadShareGroupStateSummaryResponse:
    if call.may(CLUSTER_ACTION_CLUSTER):
        response: summary.ReadShareGroupStateSummaryResponse = await handle(call)
        return response
    results = refusals(
        call.request.topics,
        lambda topic_id, partitions: summary.ReadStateSummaryResult(topic_id=topic_id, partitions=partitions),
        lambda index: summary.PartitionResult(
            partition=index, error_code=CODE, error_message=MESSAGE, state_epoch=0, leader_epoch=0, start_offset=0
        ),
    )
    return summary.ReadShareGroupStateSummaryResponse(results=results)
