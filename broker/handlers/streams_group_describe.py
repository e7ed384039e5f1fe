"""StreamsGroupDescribe (89): describes the topology, members and tasks of streams groups (KIP-1071).

v1 adds the assignor's name (KIP-1357), and the description of the topology that only a plugin of Apache Kafka stores
(KIP-1331): here it is never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.dispatch.api import STREAMS_GROUPS, Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import each, in_order, itself
from broker.handlers.consumer_group_describe import described_groups
from broker.request.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, inside
from coordinator.group.streams.describe import describe, undescribed
from protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

HIDDEN: Final = "The described group uses topics that the client is not authorized to describe."
"""The message of a group with topics that the client may not describe. Nothing else of the group is described."""

NOT_STORED: Final = 1
"""The status of a topology description that was requested: no plugin stores it."""


async def streams_group_describe(call: Call[StreamsGroupDescribeRequest]) -> StreamsGroupDescribeResponse:
    groups = await described_groups(call, undescribed, describe, topics_of, items_of, HIDDEN)
    if call.request.include_topology_description:
        for group in groups:
            if not group.error_code:
                group.topology_description_status = NOT_STORED
    return StreamsGroupDescribeResponse(groups=groups)


def topics_of(group: DescribedGroup) -> Iterator[str]:
    """Yields the topics of the topology."""
    for subtopology in (group.topology.subtopologies if group.topology is not None else None) or ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def items_of(group: DescribedGroup) -> int:
    """Returns the number of a group's topics, members and tasks."""
    count = sum(1 for _ in topics_of(group))
    for member in group.members:
        tasks = tasks_of(member.assignment) + tasks_of(member.target_assignment)
        count += 1 + tasks + len(member.task_offsets) + len(member.task_end_offsets)
    return count


def tasks_of(assignment: Assignment) -> int:
    """Returns the number of tasks in an assignment."""
    roles = (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)
    return sum(len(entry.partitions) for tasks in roles for entry in tasks)


API = Api(
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    streams_group_describe,
    authorize=in_order(
        each(DESCRIBE_GROUP, "group_ids", "groups", itself),
        inside("for every topic of the topology; otherwise the group has an error", DESCRIBE_TOPIC),
    ),
    protocol=STREAMS_GROUPS,
    entries=(Entries("group_ids", "groups"),),
    explains=True,
)
