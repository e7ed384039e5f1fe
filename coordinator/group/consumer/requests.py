"""Validates ConsumerGroupHeartbeat requests. Source: GroupCoordinatorService (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.group.consumer.member import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

FIRST_VERSION_WITH_CLIENT_IDS = 1
"""First version whose members create their own ids (KIP-1082)."""


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Raises INVALID_REQUEST, or UNSUPPORTED_ASSIGNOR."""
    if version >= FIRST_VERSION_WITH_CLIENT_IDS or request.member_epoch > 0 or request.member_epoch == LEAVING:
        _not_empty(request.member_id, "MemberId")
    _not_empty(request.group_id, "GroupId")
    _not_empty(request.instance_id, "InstanceId")
    _not_empty(request.rack_id, "RackId")
    if request.member_epoch == JOINING:
        _check_joining(request)
    elif request.member_epoch == LEAVING_FOR_A_WHILE:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require(request.member_epoch > LEAVING_FOR_A_WHILE, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
    _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
    _require(subscribes, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _not_empty(value: str | None, name: str) -> None:
    _require(value is None or not is_blank(value), f"{name} can't be empty.")


def is_blank(value: str) -> bool:
    """True if the text is empty after Java's String.trim, which removes all control characters, and of the spaces only
    U+0020."""
    return all(letter <= " " for letter in value)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
