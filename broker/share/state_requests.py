"""What the handlers of share partitions' state have in common: every partition is asked for, and answered on its own.

Source: ShareCoordinatorService (KIP-932).
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from broker.coordinators.hosting import seen_by_client
from broker.coordinators.shares import Decide, ShareCoordinator
from coordinator.share.records import ShareKey
from protocol.errors import ErrorCode, KafkaError

A = TypeVar("A")


class Failure(NamedTuple):
    """What a partition's result says of an error."""

    code: int = ErrorCode.NONE
    message: str | None = None


async def decided(coordinator: ShareCoordinator, key: ShareKey, decide: Decide[A]) -> tuple[A | None, Failure]:
    """The shard's answer, or why there is none."""
    try:
        if not key.group_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        answer: A | None = await coordinator.decide(key, decide)
    except KafkaError as error:
        seen = seen_by_client(error)
        return None, Failure(seen.code, seen.message)
    return answer, Failure()
