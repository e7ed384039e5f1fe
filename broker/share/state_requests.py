"""The common part of the handlers of share group state: each partition is processed and answered separately. A
partition that is named twice is processed twice, and gets the last result.

Source: ShareCoordinatorService (KIP-932).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from broker.request.turns import Turns
from broker.shards.translations import seen_by_client
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

T = TypeVar("T")


class NamedPartition(Protocol):
    """A partition of a request, with its fields."""

    @property
    def partition(self) -> int: ...


P = TypeVar("P", bound=NamedPartition)
P_co = TypeVar("P_co", bound=NamedPartition, covariant=True)


class NamedTopic(Protocol[P_co]):
    """A topic of a request."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sequence[P_co]: ...


class StateRequest(Protocol[P_co]):
    """One of the five requests about share group state."""

    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[NamedTopic[P_co]]: ...


async def answered(
    request: StateRequest[P],
    turns: Turns,
    answer: Callable[[ShareKey, P], Awaitable[object]],
    topic_result: Callable[..., T],
    partition_result: Callable[..., object],
    *,
    needs_partitions: bool = True,
) -> list[T]:
    """Returns the results of topics, with the result of each partition: what `answer` returns, one without an error for
    None, and one with the KafkaError that it raises. A group without a name has no results, and a topic without
    partitions none for the whole request; for InitializeShareGroupState, only for itself."""
    if not request.group_id or (needs_partitions and not all(topic.partitions for topic in request.topics)):
        return []
    results: dict[Uuid, dict[int, object]] = {}
    for topic in request.topics:
        for requested in topic.partitions:
            by_partition = results.setdefault(topic.topic_id, {})
            await turns.next()
            index = requested.partition
            try:
                result = await answer(ShareKey(request.group_id, topic.topic_id, index), requested)
                by_partition[index] = result or partition_result(partition=index, error_code=ErrorCode.NONE)
            except KafkaError as error:
                seen = seen_by_client(error)
                by_partition[index] = partition_result(
                    partition=index, error_code=seen.code, error_message=seen.message
                )
    return [
        topic_result(topic_id=topic_id, partitions=list(by_partition.values()))
        for topic_id, by_partition in results.items()
    ]
