"""The progress of restorations that members report: offsets of tasks, summed over their changelogs.

Source: Kafka's MemberTaskOffsets (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from coordinator.group.streams.configured import ConfiguredTopology
from coordinator.group.streams.tasks import TaskId
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskOffset


class TaskOffsets(NamedTuple):
    """A member's restored offsets, and the end offsets that it restores to."""

    offsets: Mapping[TaskId, int] = {}
    end_offsets: Mapping[TaskId, int] = {}

    @property
    def size(self) -> int:
        return len(self.offsets) + len(self.end_offsets)


NO_OFFSETS: Final = TaskOffsets()

MAX_OFFSETS: Final = 200_000
"""Maximum number of offsets that a group remembers. Every new assignment reads all of them, and each member may report
two for every task: twenty members could otherwise occupy the event loop for a second, again and again."""


def reported(before: TaskOffsets, request: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology) -> TaskOffsets:
    """Returns a member's progress after a heartbeat, which may leave a list out. Offsets of tasks that the topology
    doesn't have are ignored. Raises INVALID_REQUEST if a task is repeated."""
    return TaskOffsets(
        before.offsets if request.task_offsets is None else _by_task(request.task_offsets, configured),
        before.end_offsets if request.task_end_offsets is None else _by_task(request.task_end_offsets, configured),
    )


def _by_task(entries: Iterable[TaskOffset], configured: ConfiguredTopology) -> dict[TaskId, int]:
    offsets: dict[TaskId, int] = {}
    for entry in entries:
        task = TaskId(entry.subtopology_id, entry.partition)
        if task in offsets:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {task.subtopology_id} "
                f"and partition {task.partition}.",
            )
        offsets[task] = entry.offset
    subtopologies = configured.subtopologies or {}
    return {
        task: offset
        for task, offset in offsets.items()
        if task.subtopology_id in subtopologies and 0 <= task.partition < subtopologies[task.subtopology_id].task_count
    }
