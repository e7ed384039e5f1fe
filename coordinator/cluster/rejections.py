"""Errors with which the controller rejects requests."""

from __future__ import annotations

from protocol.errors import ErrorCode, KafkaError

MAX_RECORDS = 10_000
"""Maximum number of records of one request. They are appended as one batch, all or none (Kafka's
QuorumController.MAX_RECORDS_PER_USER_OP).
"""


def too_large() -> KafkaError:
    """Returns the error of a request that would need more than MAX_RECORDS records (EventHandlerExceptionInfo)."""
    return KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def out_of_time(timeout_ms: int) -> KafkaError | None:
    """Returns the error of a whole request whose timeout has passed before the work begins; None if time is left.

    Kafka's controller either takes a request out of its queue before the deadline, or rejects it
    (ControllerRequestContext).
    """
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT) if timeout_ms <= 0 else None


def error_message(error: KafkaError) -> str | None:
    """Returns the message of an error for a response; None if it only repeats the code, for which clients have their
    own text.
    """
    return None if error.message == error.code.message else error.message
