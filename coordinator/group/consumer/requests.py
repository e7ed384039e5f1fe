"""Validates ConsumerGroupHeartbeat requests. Source: GroupCoordinatorService (KIP-848)."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.group.modern.group import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from coordinator.group.modern.requests import check_topic_names, not_empty, require
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

FIRST_VERSION_WITH_CLIENT_IDS = 1
"""First version whose members create their own ids (KIP-1082)."""


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Raises INVALID_REQUEST, or UNSUPPORTED_ASSIGNOR."""
    if version >= FIRST_VERSION_WITH_CLIENT_IDS or request.member_epoch > 0 or request.member_epoch == LEAVING:
        not_empty(request.member_id, "MemberId")
    not_empty(request.group_id, "GroupId")
    not_empty(request.instance_id, "InstanceId")
    not_empty(request.rack_id, "RackId")
    check_topic_names(request.subscribed_topic_names)
    if request.member_epoch == JOINING:
        _check_joining(request)
    elif request.member_epoch == LEAVING_FOR_A_WHILE:
        require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        require(request.member_epoch > LEAVING_FOR_A_WHILE, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
    require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
    require(subscribes, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
