"""The result of a decision on an admin request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from coordinator.cluster.record import MetadataRecord
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from coordinator.cluster.brokers.sessions import BrokerSessions

A = TypeVar("A")

MAX_RECORDS = 10_000
"""Of one request, which are appended in one batch, all or none (Kafka's QuorumController.MAX_RECORDS_PER_USER_OP)."""


def too_large() -> KafkaError:
    """The answer to what would take more records than that (EventHandlerExceptionInfo)."""
    return KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def out_of_time(timeout_ms: int) -> KafkaError | None:
    """The error of a request that leaves no time to carry it out, for all of it; nothing of it is done.

    Kafka's controller takes a request out of its queue before its deadline, or not at all (ControllerRequestContext).
    """
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT) if timeout_ms <= 0 else None


def error_message(error: KafkaError) -> str | None:
    """The message of an error in an answer: none where it says no more than its code, for which clients have words."""
    return None if error.message == error.code.message else error.message


class Effect(Protocol):
    """A change of the soft state, which no record has."""

    def carry_out(self, sessions: BrokerSessions, offset: int) -> None:
        """Changes the sessions. The records are appended by then, the last of them at this offset."""
        ...


class Decided(NamedTuple, Generic[A]):
    """Records to append, the response once they are committed, and effects that follow the append."""

    records: Sequence[MetadataRecord]
    response: A
    effects: Sequence[Effect] = ()
