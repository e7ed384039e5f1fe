"""The common part of the handlers of share group state: each partition is processed and answered separately. A
partition that is named twice is processed twice, and gets the last result.

Source: ShareCoordinatorService (KIP-932).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from broker.request.turns import Turns
from broker.shards.shares import Decide, ShareCoordinator
from broker.shards.translations import seen_by_client
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

A = TypeVar("A")
R = TypeVar("R")


class NamedPartition(Protocol):
    """A partition of a request, with its fields."""

    @property
    def partition(self) -> int: ...


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


def is_whole(request: StateRequest[P_co]) -> bool:
    """True if each topic has partitions. Otherwise all requests but InitializeShareGroupState get an empty answer."""
    return all(topic.partitions for topic in request.topics)


async def answered(
    request: StateRequest[P_co], turns: Turns, answer: Callable[[Uuid, P_co], Awaitable[R]]
) -> list[tuple[Uuid, list[R]]]:
    """Returns the result of each partition, by topic id. A group without a name, or a topic without partitions, has no
    results.
    """
    results: dict[Uuid, dict[int, R]] = {}
    for topic in request.topics if request.group_id else ():
        for requested in topic.partitions:
            by_partition = results.setdefault(topic.topic_id, {})
            await turns.next()
            by_partition[requested.partition] = await answer(topic.topic_id, requested)
    return [(topic_id, list(by_partition.values())) for topic_id, by_partition in results.items()]


class Failure(NamedTuple):
    """The error of a partition's result."""

    code: int = ErrorCode.NONE
    message: str | None = None


async def submitted(coordinator: ShareCoordinator, key: ShareKey, decide: Decide[A]) -> tuple[A | None, Failure]:
    """Returns the shard's answer, or its error."""
    try:
        answer: A | None = await coordinator.submit(key, decide)
    except KafkaError as error:
        client_error = seen_by_client(error)
        return None, Failure(client_error.code, client_error.message)
    return answer, Failure()
