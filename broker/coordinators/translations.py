"""The coordinators' errors as their audiences know them: one table for each.

A code that a client does not expect from an API may end a client that should only have asked again. A code that is in
no table of its audience is told as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from coordinator.refusal import Refusal
from protocol.errors import ErrorCode, KafkaError

Translation: TypeAlias = Mapping[ErrorCode, ErrorCode]
"""The code that an audience is told, by the code that the coordinator or its log has raised."""

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
"""Members of groups of every type, producers and administrators: a coordinator's log has failed
(CoordinatorOperationExceptionHelper)."""

CLASSIC_HEARTBEATS: Final[Translation] = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NONE}
"""Members of classic groups that send a heartbeat: their sessions begin anew once the group is loaded
(GroupCoordinatorService.heartbeat)."""

OFFSET_FETCHES: Final[Translation] = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}
"""Consumers that fetch offsets: those before 3.9 would not ask again after COORDINATOR_NOT_AVAILABLE."""

PRODUCERS_BEFORE_KIP_588: Final[Translation] = {ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH}
"""Producers before PRODUCER_FENCED came to their API; and all producers in APIs that are not the coordinator's own."""

PRODUCERS_BEFORE_2_0: Final[Translation] = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE}
"""Producers that commit offsets, and could crash on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""

PRODUCES: Final[Translation] = dict.fromkeys(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""Producers whose records wait for their transaction's coordinator: they retry NOT_ENOUGH_REPLICAS, and ask for no new
metadata over it (AddPartitionsToTxnManager)."""

PRODUCES_OF_OLD_TRANSACTIONS: Final[Translation] = {
    **PRODUCES,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""The same, of producers before KIP-890, which do not know CONCURRENT_TRANSACTIONS from Produce."""

MARKERS: Final[Translation] = dict.fromkeys(
    (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR),
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
"""Transaction coordinators that send markers: they write to a partition, and know nothing of its group coordinator."""

SHARE_MEMBERS: Final[Translation] = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Members of share groups, whose share partition's state could not be read or written; all codes that are not here are
UNKNOWN_SERVER_ERROR to them (SharePartition.fetchPersisterError)."""


def translated(code: ErrorCode, translation: Translation) -> ErrorCode:
    """Returns the code as its audience knows it."""
    return translation.get(code, code)


def seen_by_client(error: KafkaError) -> KafkaError:
    """Returns the error as a coordinator's client knows it. A `Refusal` is about what the client has named, and no
    error of the log."""
    if isinstance(error, Refusal):
        return error
    code = CLIENTS.get(error.code)
    return error if code is None else KafkaError(code)


def seen_by_producer(code: ErrorCode, *, knows_fenced: bool) -> ErrorCode:
    """Returns a transaction coordinator's code as a producer knows it, in a version that has PRODUCER_FENCED or not."""
    return code if knows_fenced else translated(code, PRODUCERS_BEFORE_KIP_588)


def seen_by_share_member(error: KafkaError) -> KafkaError:
    """Returns a persister's error as members of share groups know it."""
    return KafkaError(SHARE_MEMBERS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)
