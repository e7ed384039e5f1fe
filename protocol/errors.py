"""The error codes of the protocol, and Odradek's exceptions for them.

The codes and their names are the protocol's (org.apache.kafka.common.protocol.Errors, 4.4.0). A line declares a code,
its default message, and RETRY if a client may retry; everything else is derived from it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

RETRY = True


class ErrorCode(IntEnum):
    """An error code in responses: `NAME = code, default message[, RETRY]`."""

    message: str
    retriable: bool

    def __new__(cls, code: int, message: str, retriable: bool = False) -> ErrorCode:
        self = int.__new__(cls, code)
        self._value_ = code
        self.message = message
        self.retriable = retriable
        return self

    UNKNOWN_SERVER_ERROR = -1, "the broker failed unexpectedly while serving the request"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the offset is outside the partition's log"
    CORRUPT_MESSAGE = 2, "a record batch is damaged: checksum, size or structure is wrong, or a key is missing", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "this broker has no such topic or partition", RETRY
    INVALID_FETCH_SIZE = 4, "the fetch size is invalid"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at the moment", RETRY
    NOT_LEADER_OR_FOLLOWER = 6, "this broker is not the leader of the partition, or has no replica of it", RETRY
    REQUEST_TIMED_OUT = 7, "the request was not completed within its time limit", RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker cannot be reached"
    REPLICA_NOT_AVAILABLE = 9, "the replica of this partition is not available here", RETRY
    MESSAGE_TOO_LARGE = 10, "a record batch is larger than max.message.bytes allows"
    STALE_CONTROLLER_EPOCH = 11, "the controller has moved: its epoch in the request is old"
    OFFSET_METADATA_TOO_LARGE = 12, "the metadata text of a committed offset is too long"
    NETWORK_EXCEPTION = 13, "the connection was closed before the response arrived", RETRY
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading its state", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "no coordinator is available", RETRY
    NOT_COORDINATOR = 16, "this broker is not the coordinator that the request needs", RETRY
    INVALID_TOPIC_EXCEPTION = 17, "the topic's name is invalid, or the operation is not allowed on this topic"
    RECORD_LIST_TOO_LARGE = 18, "the record batches together are larger than a log segment"
    NOT_ENOUGH_REPLICAS = 19, "fewer replicas are in sync than min.insync.replicas requires", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "written, but to fewer replicas than min.insync.replicas requires", RETRY
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "the generation is not the group's current one"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member's protocol type or protocols are incompatible with the group's"
    INVALID_GROUP_ID = 24, "the group id is invalid"
    UNKNOWN_MEMBER_ID = 25, "the group has no such member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside group.min/max.session.timeout.ms"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing: join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offset commit is too large to be stored"
    TOPIC_AUTHORIZATION_FAILED = 29, "not authorised for the topic"
    GROUP_AUTHORIZATION_FAILED = 30, "not authorised for the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, "not authorised for the cluster"
    INVALID_TIMESTAMP = 32, "a record's timestamp is outside the range that the topic accepts"
    UNSUPPORTED_SASL_MECHANISM = 33, "the SASL mechanism is not enabled"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of the SASL exchange"
    UNSUPPORTED_VERSION = 35, "this version of the API is not supported"
    TOPIC_ALREADY_EXISTS = 36, "a topic with this name already exists"
    INVALID_PARTITIONS = 37, "the number of partitions is invalid"
    INVALID_REPLICATION_FACTOR = 38, "the replication factor is below 1 or above the number of brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, "the replica assignment is invalid"
    INVALID_CONFIG = 40, "a configuration is invalid"
    NOT_CONTROLLER = 41, "this node is not the active controller", RETRY
    INVALID_REQUEST = 42, "the request contradicts itself or the protocol"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the message format of the partition does not support the request"
    POLICY_VIOLATION = 44, "a policy of the cluster forbids the request"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the producer's sequence number does not follow its last one"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the producer's sequence number was written before"
    INVALID_PRODUCER_EPOCH = 47, "the producer's epoch is older than the last known one"
    INVALID_TXN_STATE = 48, "the transaction's state does not allow the operation"
    INVALID_PRODUCER_ID_MAPPING = 49, "the producer id is not the one assigned to the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is above transaction.max.timeout.ms"
    CONCURRENT_TRANSACTIONS = 51, "another operation on the same transaction is still in progress", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "the marker's sender is no longer the coordinator of this producer"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "not authorised for the transactional id"
    SECURITY_DISABLED = 54, "the broker has no authorizer"
    OPERATION_NOT_ATTEMPTED = 55, "not attempted, because another operation of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the partition's log directory failed", RETRY
    LOG_DIR_NOT_FOUND = 57, "the directory is not in log.dirs"
    SASL_AUTHENTICATION_FAILED = 58, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "this broker does not know the producer id: its records may have been deleted"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition is being reassigned"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are not enabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, "no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the principal is neither owner nor renewer of the delegation token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "delegation tokens can't be requested over a connection of this kind"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "not authorised for the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the principal's type is not supported"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "no such fetch session", RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session's epoch is not the expected one", RETRY
    LISTENER_NOT_FOUND = 72, "the leader has no listener with the name of the request's listener", RETRY
    TOPIC_DELETION_DISABLED = 73, "delete.topic.enable is false"
    FENCED_LEADER_EPOCH = 74, "the leader epoch of the request is older than the partition's", RETRY
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch of the request is newer than the partition's", RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the client's version of the request does not support the batch's compression"
    STALE_BROKER_EPOCH = 77, "the broker's epoch has changed"
    OFFSET_NOT_AVAILABLE = 78, "the new leader's high watermark has not caught up yet", RETRY
    MEMBER_ID_REQUIRED = 79, "join again, with the member id given in this response"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", RETRY
    GROUP_MAX_SIZE_REACHED = 81, "the group has the maximum number of members"
    FENCED_INSTANCE_ID = 82, "another member has taken over the group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica of the partition can become its leader", RETRY
    ELECTION_NOT_NEEDED = 84, "the partition already has the leader that an election would choose", RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "the partition is not being reassigned"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is subscribed to the topic, so its offsets cannot be deleted"
    INVALID_RECORD = 87, "a record breaks a rule of the broker"
    UNSTABLE_OFFSET_COMMIT = 88, "an offset commit is part of a transaction that is not finished", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "the quota is exceeded", RETRY
    PRODUCER_FENCED = 90, "a newer producer with the same transactional id has taken over"
    RESOURCE_NOT_FOUND = 91, "no such resource"
    DUPLICATE_RESOURCE = 92, "the request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential does not meet the requirements"
    INCONSISTENT_VOTER_SET = 94, "sender or receiver is not one of the expected voters"
    INVALID_UPDATE_VERSION = 95, "the update's version is invalid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the principal of a forwarded request cannot be read"
    SNAPSHOT_NOT_FOUND = 98, "no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "this broker has no topic with this id", RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "the broker id is in use by another broker"
    BROKER_ID_NOT_REGISTERED = 102, "no broker with this id is registered"
    INCONSISTENT_TOPIC_ID = 103, "the topic id differs from the one in the log", RETRY
    INCONSISTENT_CLUSTER_ID = 104, "the cluster id differs from this cluster's"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "the fetch session mixes topic names and topic ids", RETRY
    INELIGIBLE_REPLICA = 107, "the new in-sync set has a replica that must not be in it"
    NEW_LEADER_ELECTED = 108, "the partition was changed, and a new leader was elected"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset has moved to tiered storage"
    FENCED_MEMBER_EPOCH = 110, "the member's epoch is fenced: revoke all partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, "another member still uses the group instance id"
    UNSUPPORTED_ASSIGNOR = 112, "the group does not support the assignor"
    STALE_MEMBER_EPOCH = 113, "the member's epoch is old: heartbeat for the current one, then retry"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request was sent to the wrong kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "this kind of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "no such controller"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is unknown or outdated"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than the broker accepts"
    INVALID_REGISTRATION = 119, "the controller refuses the broker's registration"
    TRANSACTION_ABORTABLE = 120, "the transaction failed; after an abort the transactional id is usable again"
    INVALID_RECORD_STATE = 121, "the record's delivery state does not allow the acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, "no such share session", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session's epoch is not the expected one", RETRY
    FENCED_STATE_EPOCH = 124, "the state epoch of the share partition differs from the coordinator's"
    INVALID_VOTER_KEY = 125, "the voter's key differs from this replica's"
    DUPLICATE_VOTER = 126, "the voter is already in the set of voters"
    VOTER_NOT_FOUND = 127, "the voter is not in the set of voters"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is invalid"
    REBOOTSTRAP_REQUIRED = 129, "the client's metadata is too old: start again from the bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the topology's epoch is invalid"
    STREAMS_TOPOLOGY_FENCED = 132, "the topology's epoch is outdated"
    SHARE_SESSION_LIMIT_REACHED = 133, "the broker has the maximum number of share sessions", RETRY
    GROUP_DELETION_FAILED = 134, "the group could not be deleted"
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, "the topology description could not be processed"
    CONTROLLER_ID_NOT_REGISTERED = 136, "the controller is not registered"


_BY_NUMBER: dict[int, ErrorCode] = {int(code): code for code in ErrorCode}
RETRIABLE: frozenset[ErrorCode] = frozenset(code for code in ErrorCode if code.retriable)


def error_code(number: int) -> ErrorCode:
    """Returns the error code with this number, or UNKNOWN_SERVER_ERROR for an unknown number."""
    return _BY_NUMBER.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


MAX_MESSAGE_LENGTH: Final = 8000
"""Longest error message, in characters. A message may repeat text of the client, and its UTF-8 length must fit into an
int16."""


class KafkaError(Exception):
    """An error of a request, or of a topic or partition in it, with the error code for the response."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = code.message if message is None else message[:MAX_MESSAGE_LENGTH]

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    def detached(self) -> Self:
        """Returns the error without traceback and causes, so that it can be stored. Otherwise the traceback's frames
        could refer to the object that stores the error: a cycle, which only a full garbage collection frees."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class InvalidRecords(KafkaError):
    """An append that is rejected because of invalid records, which Produce lists since version 8 (KIP-467).

    `record_errors` has the index within the partition's batch and the reason, or None to leave it to `message`.
    """

    def __init__(
        self, code: ErrorCode, message: str | None = None, record_errors: list[tuple[int, str | None]] | None = None
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors if record_errors is not None else []


class ProtocolError(Exception):
    """Bytes of a peer that break the protocol, so that its connection must be closed. `offset` is the position in the
    frame."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset

    def __str__(self) -> str:
        return self.message if self.offset is None else f"{self.message} (at byte {self.offset})"
