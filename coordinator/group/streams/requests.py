"""Checks StreamsGroupHeartbeat requests, before their group is known.

Source: GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid (KIP-1071).
"""

from __future__ import annotations

from typing import Final

from coordinator.group.modern.group import JOINING, LEAVING_FOR_A_WHILE
from coordinator.group.modern.requests import not_empty, require
from coordinator.group.streams.topology import invalid
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds, Topology

MAX_NAMES: Final = 10_000
"""Maximum number of names in a topology: its subtopologies, their topics, and their copartition groups. A topology with
as many internal topics, whose configs it names, has a record near the limit of a batch; a decision on it takes a tenth
of a second."""


def check(request: StreamsGroupHeartbeatRequest) -> None:
    """Raises INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY."""
    if request.topology is not None:
        _check_features(request.topology)
        check_size(request.topology)
    not_empty(request.member_id, "MemberId")
    not_empty(request.group_id, "GroupId")
    not_empty(request.instance_id, "InstanceId")
    not_empty(request.rack_id, "RackId")
    if request.member_epoch == JOINING:
        _check_joining(request)
    elif request.member_epoch == LEAVING_FOR_A_WHILE:
        require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        require(
            request.member_epoch > LEAVING_FOR_A_WHILE,
            f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to {LEAVING_FOR_A_WHILE}.",
        )
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(ids is not None for ids in tasks):
        require(all(ids is not None for ids in tasks), "If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOINING:
        require(request.topology is None, "Topology can only be provided when (re-)joining.")


def _check_features(topology: Topology) -> None:
    for subtopology in topology.subtopologies:
        require(not subtopology.source_topic_regex, "Regular expressions for source topics are not supported yet.")


def check_size(topology: Topology) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY if the topology has more than MAX_NAMES names. Only counts them."""
    names = sum(
        1
        + len(subtopology.source_topics)
        + len(subtopology.repartition_sink_topics)
        + len(subtopology.state_changelog_topics)
        + len(subtopology.repartition_source_topics)
        + len(subtopology.copartition_groups)
        for subtopology in topology.subtopologies
    )
    if names > MAX_NAMES:
        raise invalid(
            f"The topology has {names:,} subtopologies, topics and copartition groups; it may have at most "
            f"{MAX_NAMES:,}."
        )


def _check_joining(request: StreamsGroupHeartbeatRequest) -> None:
    require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
    owned: tuple[tuple[str, list[TaskIds] | None], ...] = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for name, ids in owned:
        require(ids == [], f"{name} must be empty when (re-)joining.")
    require(request.topology is not None, "Topology must be non-null when (re-)joining.")
    if request.topology is not None:
        _check_changelogs(request.topology)


def _check_changelogs(topology: Topology) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise invalid(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
