"""A shard with a streams group, and members that send what a test says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.group.config import GroupConfig
from coordinator.group.records import GroupRecord
from coordinator.group.state import Client
from coordinator.group.streams.describe import described
from coordinator.group.streams.group import StreamsGroup
from coordinator.group.streams.heartbeat import StreamsHeartbeatResult, heartbeat
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.tasks import TaskAssignment, Tasks
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.coordinator.group.world import GROUP, Groups

DELAY_MS = 3_000
"""The delay of the first assignment."""

TasksOf = Mapping[str, Iterable[int]]


def topology(epoch: int = 0, sources: Iterable[str] = ("topic",), changelogs: Iterable[str] = ()) -> Topology:
    """Returns a topology with one subtopology, "0"."""
    return Topology(
        epoch=epoch,
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=list(sources),
                source_topic_regex=[],
                state_changelog_topics=[
                    TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=[]) for name in changelogs
                ],
                repartition_sink_topics=[],
                repartition_source_topics=[],
                copartition_groups=[],
            )
        ],
    )


def task_ids(tasks: TasksOf) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=subtopology, partitions=list(partitions)) for subtopology, partitions in tasks.items()
    ]


class StreamsGroups(Groups):
    """A shard with the source topic "topic" of 2 partitions, and a streams group."""

    def __init__(self, config: Mapping[str, str] | None = None, **settings: object) -> None:
        super().__init__(**settings)
        self.config = GroupConfig.parse(config or {})
        self.topic_id = self.create_topic("topic", 2)
        self.is_doubling = True

    @property
    def streams(self) -> StreamsGroup:
        group = self.shard.state.groups[GROUP]
        assert isinstance(group, StreamsGroup)
        return group

    def streams_member(self, member_id: str) -> StreamsMember:
        return self.streams.members[member_id]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the written records, with a - for tombstones."""
        return [
            ("-" if record.value is None else "")
            + type(record.key).__name__.removeprefix("StreamsGroup").removesuffix("Key")
            for record in self.written
            if isinstance(record, GroupRecord)
        ]

    def beat(
        self, member: str, epoch: int, *, owned: TasksOf | None = None, version: int = 1, **fields: object
    ) -> StreamsHeartbeatResult:
        """Sends a heartbeat; `owned` are active tasks."""
        tasks = None if owned is None else task_ids(owned)
        none: list[TaskIds] | None = None if owned is None else []
        all_fields: dict[str, object] = {
            "endpoint_information_epoch": 0,
            "active_tasks": tasks,
            "standby_tasks": none,
            "warmup_tasks": none,
            **fields,
        }
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=epoch,
            **all_fields,  # type: ignore[arg-type]
        )
        return self.ask(heartbeat, request, Client(version, "client", "/host")).answer

    def enter(self, member: str, described: Topology | None = None, **fields: object) -> StreamsHeartbeatResult:
        """Joins; the member is its own process unless `process_id` says otherwise."""
        return self.beat(
            member,
            0,
            **{  # type: ignore[arg-type]
                "owned": {},
                "rebalance_timeout_ms": 5_000,
                "process_id": member,
                "topology": described or topology(),
                **fields,
            },
        )

    def settled(self, member: str, described: Topology | None = None, **fields: object) -> StreamsHeartbeatResult:
        """Joins as the first member, and sends a heartbeat once the first assignment is made."""
        epoch = self.enter(member, described, **fields).response.member_epoch
        self.advance(DELAY_MS)
        return self.beat(member, epoch)

    def described(self) -> DescribedGroup:
        return described(self.shard.state, GROUP)


def active(heard: StreamsHeartbeatResult) -> dict[str, list[int]] | None:
    """Returns the active tasks in an answer."""
    tasks = heard.response.active_tasks
    return None if tasks is None else {entry.subtopology_id: entry.partitions for entry in tasks}


def codes(heard: StreamsHeartbeatResult) -> list[int]:
    """Returns the codes of the statuses in an answer."""
    return [status.status_code for status in heard.response.status or ()]


def target(
    active: TasksOf | None = None, standby: TasksOf | None = None, warmup: TasksOf | None = None
) -> TaskAssignment:
    return TaskAssignment(Tasks(active), Tasks(standby), Tasks(warmup))
