"""Stream threads of one application on a virtual clock, driven by a seed: they join, stall, die, send wrong data, lose
answers and come back, while topics grow, come and go, options change, and the broker is killed and loads the group
again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from coordinator.group.config import GroupConfig
from coordinator.group.streams.group import StreamsGroup
from coordinator.group.streams.heartbeat import StreamsHeartbeatResult
from coordinator.group.streams.member import StreamsMember
from coordinator.group.streams.status import StatusCode
from coordinator.group.streams.tasks import NOTHING, TaskAssignment, TaskId, Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import streams_group_heartbeat as messages
from tests.coordinator.group.streams.world import StreamsGroups
from tests.coordinator.group.world import GROUP

SESSION_MS = 45_000
HEARTBEAT_MS = 5_000

SOURCES = ("apple", "banana")
REPARTITION, CHANGELOG = "app-join-repartition", "app-join-changelog"
INTERNAL_TOPICS = (REPARTITION, CHANGELOG)
STATEFUL = "1"

START_OVER = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.INVALID_REQUEST,  # tasks that a smaller topic no longer has
}
WAIT = {ErrorCode.UNRELEASED_INSTANCE_ID}


def topic(name: str) -> messages.TopicInfo:
    return messages.TopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=[])


def application() -> messages.Topology:
    """Returns a topology that repartitions apples and joins them with bananas, with state."""
    return messages.Topology(
        epoch=1,
        subtopologies=[
            messages.Subtopology(
                subtopology_id="0",
                source_topics=["apple"],
                source_topic_regex=[],
                state_changelog_topics=[],
                repartition_sink_topics=[REPARTITION],
                repartition_source_topics=[],
                copartition_groups=[],
            ),
            messages.Subtopology(
                subtopology_id=STATEFUL,
                source_topics=["banana"],
                source_topic_regex=[],
                state_changelog_topics=[topic(CHANGELOG)],
                repartition_sink_topics=[],
                repartition_source_topics=[topic(REPARTITION)],
                copartition_groups=[
                    messages.CopartitionGroup(source_topics=[0], source_topic_regex=[], repartition_source_topics=[0])
                ],
            ),
        ],
    )


class Thread:
    """A stream thread, which is a member, and its own view of its state."""

    def __init__(self, simulation: Simulation, member_id: str, process_id: str, instance_id: str | None) -> None:
        dice = simulation.dice
        self.simulation = simulation
        self.member_id = member_id
        self.instance_id = instance_id
        self.process_id = process_id
        self.endpoint = messages.Endpoint(host=member_id, port=80) if dice.random() < 0.5 else None
        self.epoch = 0
        self.owned = NOTHING
        self.to_own: TaskAssignment | None = None
        """The last assignment, until the thread has closed the tasks that are not in it, and opened the others."""
        self.full = True
        """True if the next heartbeat must have the tasks: after joining, or after a lost answer."""
        self.due_ms = simulation.groups.now_ms
        self.heard_ms = simulation.groups.now_ms
        self.stalled_until_ms = 0

    @property
    def believes(self) -> bool:
        """True if the thread has reason to believe that it still owns its tasks."""
        return self.epoch > 0 and self.simulation.groups.now_ms < self.heard_ms + SESSION_MS

    def step(self) -> None:
        groups, dice = self.simulation.groups, self.simulation.dice
        if self.to_own is not None and dice.random() < 0.7:
            self.move(self.to_own)
        if groups.now_ms < self.stalled_until_ms or groups.now_ms < self.due_ms:
            return
        self.due_ms = groups.now_ms + HEARTBEAT_MS
        try:
            heard = self.heartbeat()
        except KafkaError as error:
            self.on_error(error.code)
            return
        self.simulation.hear(heard)
        if dice.random() < self.simulation.loss:
            self.full = True
        else:
            self.take(heard.response)

    def move(self, target: TaskAssignment) -> None:
        """Closes tasks; opens new tasks once none is left to close."""
        kept = TaskAssignment(*(mine & new for mine, new in zip(self.owned, target, strict=True)))
        if kept == self.owned:
            kept, self.to_own = target, None
        self.owned = kept
        self.full = True

    def heartbeat(self, endpoint_epoch: int = 0) -> StreamsHeartbeatResult:
        joins = self.epoch == 0
        tells = self.full or joins
        owned: list[list[messages.TaskIds] | None] = [
            tasks.ids(messages.TaskIds) if tells else None for tasks in (NOTHING if joins else self.owned)
        ]
        return self.simulation.groups.beat(
            self.member_id,
            self.epoch,
            active_tasks=owned[0],
            standby_tasks=owned[1],
            warmup_tasks=owned[2],
            topology=application() if joins else None,
            process_id=self.process_id if joins else None,
            user_endpoint=self.endpoint,
            rebalance_timeout_ms=30_000 if tells else -1,
            instance_id=self.instance_id,
            endpoint_information_epoch=endpoint_epoch,
            task_offsets=self.offsets(),
        )

    def offsets(self) -> list[messages.TaskOffset] | None:
        dice = self.simulation.dice
        if dice.random() < 0.7:
            return None
        partitions = dice.sample(range(8), 3)
        return [
            messages.TaskOffset(subtopology_id=STATEFUL, partition=partition, offset=dice.randint(0, 9))
            for partition in partitions
        ]

    def on_error(self, code: ErrorCode) -> None:
        if code in START_OVER:
            self.epoch, self.owned, self.to_own = 0, NOTHING, None
        else:
            assert code in WAIT, code

    def take(self, response: messages.StreamsGroupHeartbeatResponse) -> None:
        self.heard_ms = self.simulation.groups.now_ms
        self.epoch = response.member_epoch
        self.full = False
        if response.active_tasks is not None:
            self.to_own = TaskAssignment(
                Tasks.from_ids(response.active_tasks),
                Tasks.from_ids(response.standby_tasks or ()),
                Tasks.from_ids(response.warmup_tasks or ()),
            )

    def leave(self, epoch: int) -> None:
        """Leaves the group, if it is a member; an error has the same effect."""
        if self.epoch > 0:
            with suppress(KafkaError):
                self.simulation.groups.beat(self.member_id, epoch, instance_id=self.instance_id)


class Simulation:
    """The life of an application, from one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.groups = StreamsGroups()
        self.loss = self.dice.choice([0.0, 0.1, 0.3])
        self.threads: list[Thread] = []
        self.wanted: dict[str, int] = {}
        """The internal topics that the last heartbeat requested, which the broker creates some time later."""
        self._members = 0
        for name in SOURCES:
            self.groups.create_topic(name, self.dice.randint(1, 4))
        self.change_options()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step(self.dice.choice(self.EVENTS))

    def step(self, event: Callable[[Simulation], None] | None) -> None:
        self.groups.advance(self.dice.choice([0, 100, 1_000, 2_500]))
        if event is not None and self.dice.random() < 0.4:
            event(self)
        self.dice.shuffle(self.threads)
        for thread in self.threads:
            thread.step()
            self.check()
        if self.dice.random() < 0.3:
            self.create_wanted()

    def settle(self) -> None:
        """Lets the application run undisturbed, with all its topics, until every member must have converged."""
        self.loss = 0.0
        for name in SOURCES:
            if name not in self.groups.topics.by_name:
                self.groups.create_topic(name, self.dice.randint(1, 4))
        for name in INTERNAL_TOPICS:
            self.drop(name)
        for thread in self.threads:
            thread.stalled_until_ms = 0
        for _ in range(120):
            self.step(None)
            self.create_wanted()

    def hear(self, heard: StreamsHeartbeatResult) -> None:
        self.wanted = {topic.name: topic.num_partitions for topic in heard.missing.values()}
        codes = {status.status_code for status in heard.response.status or ()}
        assert bool(heard.missing) == (StatusCode.MISSING_INTERNAL_TOPICS in codes)

    def create_wanted(self) -> None:
        for name, partitions in self.wanted.items():
            if name not in self.groups.topics.by_name:
                self.groups.create_topic(name, partitions)
        self.wanted = {}

    # Events.

    def join(self) -> None:
        self._members += 1
        instance_id = f"instance-{self._members}" if self.dice.random() < 0.3 else None
        process_id = f"process-{self.dice.randint(0, 3)}"
        self.threads.append(Thread(self, f"member-{self._members}", process_id, instance_id))

    def leave(self) -> None:
        if thread := self.pick():
            thread.leave(-1)
            self.threads.remove(thread)

    def restart(self) -> None:
        """Restarts a static member with another member id, and the state on its disk."""
        thread = self.pick()
        if thread is not None and thread.instance_id is not None:
            thread.leave(-2)
            self.threads.remove(thread)
            self._members += 1
            self.threads.append(Thread(self, f"member-{self._members}", thread.process_id, thread.instance_id))

    def die(self) -> None:
        if thread := self.pick():
            self.threads.remove(thread)

    def stall(self) -> None:
        if thread := self.pick():
            thread.stalled_until_ms = self.groups.now_ms + self.dice.choice([10_000, 40_000, 60_000])

    def lie(self) -> None:
        """Sends an epoch that the member doesn't have."""
        thread = self.pick()
        if thread is not None and thread.epoch > 0:
            thread.epoch += self.dice.choice([-1, 1, 5])
            if thread.epoch == 0:
                thread.owned, thread.to_own = NOTHING, None

    def create_source(self) -> None:
        missing = [name for name in SOURCES if name not in self.groups.topics.by_name]
        if missing:
            self.groups.create_topic(missing[0], self.dice.randint(1, 4))

    def delete_topic(self) -> None:
        if self.groups.topics.by_name:
            self.drop(self.dice.choice(list(self.groups.topics.by_name)))

    def grow_topic(self) -> None:
        name = self.dice.choice(SOURCES)
        if name in self.groups.topics.by_name:
            self.groups.add_partitions(name, 1)

    def change_options(self) -> None:
        self.groups.config = GroupConfig.parse({"streams.num.standby.replicas": str(self.dice.randint(0, 2))})

    def kill_broker(self) -> None:
        before = self.durable_state()
        self.groups.reload()
        assert self.durable_state() == before
        for thread in self.threads:  # a new coordinator gives them time
            thread.heard_ms = self.groups.now_ms if thread.believes else thread.heard_ms

    EVENTS: tuple[Callable[[Simulation], None], ...] = (
        join, join, join, leave, restart, restart, die, stall, lie, create_source, create_source, delete_topic,
        grow_topic, change_options, kill_broker,
    )  # fmt: skip

    def pick(self) -> Thread | None:
        return self.dice.choice(self.threads) if self.threads else None

    def drop(self, name: str) -> None:
        if name in self.groups.topics.by_name:
            self.groups.delete_topic(name)

    # What must hold.

    @property
    def group(self) -> StreamsGroup | None:
        group = self.groups.shard.state.groups.get(GROUP)
        return group if isinstance(group, StreamsGroup) else None

    @property
    def members(self) -> Mapping[str, StreamsMember]:
        return {} if self.group is None else self.group.members

    def durable_state(self) -> object:
        group = self.group
        if group is None:
            return None
        epochs = (group.epoch, group.assignment_epoch, group.assigned_at_ms, group.description, group.topology)
        held = {task: group.active_process(task) for _member, task, _is_active in self.held()}
        return epochs, dict(group.members), dict(group.targets), held

    def held(self) -> Iterator[tuple[StreamsMember, TaskId, bool]]:
        """Yields each task that a member owns or has not yet given up, and if it is active."""
        for member in self.members.values():
            for part in (member.assigned, member.pending_revocation):
                for task in part.active:
                    yield member, task, True
                for task in (*part.standby, *part.warmup):
                    yield member, task, False

    def check(self) -> None:
        """Checks that each task is active in one member at most, according to the coordinator and to the threads, and
        that no two threads of a process have the same task."""
        active: dict[TaskId, str] = {}
        in_process: dict[tuple[str, TaskId], str] = {}
        for member, task, is_active in self.held():
            other = in_process.setdefault((member.process_id, task), member.member_id)
            assert other == member.member_id, f"{task} is of {other} and of {member.member_id} of the same process"
            if is_active:
                owner = active.setdefault(task, member.member_id)
                assert owner == member.member_id, f"{task} is of {owner} and of {member.member_id}"
        believed: dict[TaskId, str] = {}
        for thread in self.threads:
            if thread.believes and thread.member_id in self.members:
                for task in thread.owned.active:
                    owner = believed.setdefault(task, thread.member_id)
                    assert owner == thread.member_id, f"{owner} and {thread.member_id} process {task}"

    def check_settled(self) -> None:
        """Checks that every member has converged: all tasks are active once, with as many standby tasks as possible."""
        group = self.group
        if not self.threads:
            assert group is None or group.is_empty
            return
        assert group is not None
        assert group.state_name == "Stable", group
        assert set(group.members) == {thread.member_id for thread in self.threads}
        assert all(thread.owned == group.members[thread.member_id].assigned.assignment for thread in self.threads)
        assert all(group.members[name].assigned.assignment == target for name, target in group.targets.items())
        self.check_tasks()
        self.check_endpoints()

    def check_tasks(self) -> None:
        sizes = {name: len(topic.partitions) for name, topic in self.groups.topics.by_name.items()}
        expected = [TaskId("0", index) for index in range(sizes["apple"])]
        stateful = [TaskId(STATEFUL, index) for index in range(sizes["banana"])]
        assert sizes[REPARTITION] == sizes[CHANGELOG] == sizes["banana"]
        assert sorted(task for thread in self.threads for task in thread.owned.active) == [*expected, *stateful]
        processes = {thread.process_id for thread in self.threads}
        replicas = min(self.groups.config.streams_num_standby_replicas, len(processes) - 1)
        standby = sorted(task for thread in self.threads for task in thread.owned.standby)
        assert standby == sorted(stateful * replicas)

    def check_endpoints(self) -> None:
        response = self.threads[0].heartbeat(endpoint_epoch=-1).response
        told = {
            entry.user_endpoint.host: {topic.topic: topic.partitions for topic in entry.active_partitions}
            for entry in response.partitions_by_user_endpoint or ()
        }
        expected: dict[str, dict[str, list[int]]] = {}
        for thread in self.threads:
            if thread.endpoint is not None:
                owned = thread.owned.active.partitions
                inputs = {"apple": "0", "banana": STATEFUL, REPARTITION: STATEFUL}
                expected[thread.member_id] = {
                    name: sorted(owned[subtopology]) for name, subtopology in inputs.items() if subtopology in owned
                }
        assert told == expected
