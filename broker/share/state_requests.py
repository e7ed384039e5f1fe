"""What the handlers of share partitions' state have in common: every partition is asked for, and answered on its own.

Source: ShareCoordinatorService (KIP-932).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from broker.coordinators.hosting import seen_by_client
from broker.coordinators.shares import Decide, ShareCoordinator
from coordinator.share.records import ShareKey
from protocol.errors import ErrorCode, KafkaError

A = TypeVar("A")
T_co = TypeVar("T_co", covariant=True)


class StateRequest(Protocol[T_co]):
    """One of the five requests."""

    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[T_co]: ...


def named(request: StateRequest[T_co]) -> Sequence[T_co]:
    """The topics that are asked for: none of a group without a name."""
    return request.topics if request.group_id else ()


class Failure(NamedTuple):
    """What a partition's result says of an error."""

    code: int = ErrorCode.NONE
    message: str | None = None


async def decided(coordinator: ShareCoordinator, key: ShareKey, decide: Decide[A]) -> tuple[A | None, Failure]:
    """The shard's answer, or why there is none."""
    try:
        answer: A | None = await coordinator.decide(key, decide)
    except KafkaError as error:
        seen = seen_by_client(error)
        return None, Failure(seen.code, seen.message)
    return answer, Failure()
