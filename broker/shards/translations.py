"""Translates coordinators' errors for each audience, with a table for each.

A code that a client doesn't expect from an API may end a client that should only have tried again. A code that is not
in its audience's table is sent unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from coordinator.engine.errors import Rejection
from protocol.errors import ErrorCode, KafkaError

Translation: TypeAlias = Mapping[ErrorCode, ErrorCode]
"""The code that an audience gets, by the code that the coordinator or its log has raised."""

CLIENTS: Final[Translation] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""For members of groups of every type, producers and administrators: a coordinator's log has failed
(CoordinatorOperationExceptionHelper)."""

CLASSIC_HEARTBEATS: Final[Translation] = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NONE}
"""For members of classic groups that send a heartbeat: their sessions begin again once the group is loaded
(GroupCoordinatorService.heartbeat)."""

OFFSET_FETCHES: Final[Translation] = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}
"""For consumers that fetch offsets: before 3.9 they would not try again after COORDINATOR_NOT_AVAILABLE."""

PRODUCERS_BEFORE_KIP_588: Final[Translation] = {ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH}
"""For producers whose version of the API doesn't define PRODUCER_FENCED, and for all producers in APIs that the
coordinator does not answer itself, such as Produce."""

PRODUCERS_BEFORE_2_0: Final[Translation] = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE}
"""For producers that commit offsets, and could crash on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""

PRODUCES: Final[Translation] = dict.fromkeys(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""For producers whose records wait for their transaction's coordinator: they retry NOT_ENOUGH_REPLICAS without a
Metadata request (AddPartitionsToTxnManager)."""

PRODUCES_OF_OLD_TRANSACTIONS: Final[Translation] = {
    **PRODUCES,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""For producers before KIP-890 whose records wait for their transaction's coordinator: they don't expect
CONCURRENT_TRANSACTIONS from Produce."""

MARKERS: Final[Translation] = dict.fromkeys(
    (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR),
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""For transaction coordinators that send markers: they write to a partition, and don't know its group coordinator."""

SHARE_MEMBERS: Final[Translation] = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""For members of share groups, if their share partition's state can't be read or written; all other codes become
UNKNOWN_SERVER_ERROR (SharePartition.fetchPersisterError)."""


def translated(code: ErrorCode, translation: Translation) -> ErrorCode:
    """Returns the code that its audience gets."""
    return translation.get(code, code)


def seen_by_client(error: KafkaError) -> KafkaError:
    """Returns the error that a coordinator's client gets. A `Rejection` is about the client's request, not an error of
    the log."""
    code = None if isinstance(error, Rejection) else CLIENTS.get(error.code)
    return error.detached() if code is None else KafkaError(code)


def seen_by_producers(fenced_since: int) -> Callable[[KafkaError, int], KafkaError]:
    """Returns the translation of a transaction coordinator's errors, (error, version) → the error that a producer gets:
    PRODUCER_FENCED since the version `fenced_since`."""

    def seen(error: KafkaError, version: int) -> KafkaError:
        return error if version >= fenced_since else KafkaError(translated(error.code, PRODUCERS_BEFORE_KIP_588))

    return seen


def seen_by_share_member(error: KafkaError) -> KafkaError:
    """Returns the error that members of share groups get for a persister's error."""
    return KafkaError(SHARE_MEMBERS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)
