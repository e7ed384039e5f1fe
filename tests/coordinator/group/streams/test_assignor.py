"""Tests the sticky assignor: each active task once, equal loads, standby tasks in other processes, and few moves.

The cases are those of Apache Kafka's StickyTaskAssignorTest at 4.4. A member is written as its id, its process, its
active tasks, its standby tasks, and the offsets of the state on its disk: `m1 p1: a0 a1 | b2 | b3=100`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group.streams.assignor import StreamsGroupSpec, StreamsMemberSpec, assign_sticky
from coordinator.group.streams.configured import ConfiguredSubtopology
from coordinator.group.streams.tasks import NO_TASKS, TaskAssignment, TaskId, Tasks
from coordinator.group.streams.topology import InternalTopicInfo
from tests.counted_work import lines_run

CASES = (
    (
        "as many tasks as processes",
        ("a3", 0),
        "m1 p1:, m2 p2:, m3 p3:",
        "m1: a0, m2: a1, m3: a2",
    ),
    (
        "two members in each process",
        ("a3 b3", 0),
        "m1 p1:, m2 p1:, m3 p2:, m4 p2:, m5 p3:, m6 p3:",
        "m1: a0, m2: b0, m3: a1, m4: b1, m5: a2, m6: b2",
    ),
    (
        "two members in each process, with standby tasks",
        ("a3 b3", 1),
        "m1 p1:, m2 p1:, m3 p2:, m4 p2:, m5 p3:, m6 p3:",
        "m1: a0 | b2, m2: b0 | a2, m3: a1 | b0, m4: b1 | a0, m5: a2 | b1, m6: b2 | a1",
    ),
    (
        "an active task doesn't move to another process",
        ("a3", 0),
        "m1 p1: a0, m2 p2: a1",
        "m1: a0 a2, m2: a1",
    ),
    (
        "an active task doesn't move after a member was replaced",
        ("a3", 0),
        "m2 p2: a1, m3 p1: a2",
        "m2: a0 a1, m3: a2",
    ),
    (
        "a new process gets one task and nothing else moves",
        ("a3", 0),
        "m1 p1: a0 a2, m2 p2: a1, m3 p3:",
        "m1: a0, m2: a1, m3: a2",
    ),
    (
        "a process with two members gets twice as many",
        ("a3", 0),
        "m1 p1:, m2 p2:, m3 p2:",
        "m1: a0, m2: a1, m3: a2",
    ),
    (
        "subtopologies of unequal size",
        ("a6 b1", 0),
        "m1 p1: a0 a1 a2 a3 a4 a5 b0, m2 p2:",
        "m1: a0 a1 a2 b0, m2: a3 a4 a5",
    ),
    (
        "more members than tasks",
        ("a3", 0),
        "m1 p1: a0, m2 p2: a2, m3 p3: a1, m4 p4:, m5 p5:",
        "m1: a0, m2: a2, m3: a1, m4:, m5:",
    ),
    (
        "more members than tasks, owned by others",
        ("a3", 0),
        "m1 p1:, m2 p2: a0, m3 p3:, m4 p4: a2, m5 p5: a1",
        "m1:, m2: a0, m3:, m4: a2, m5: a1",
    ),
    (
        "a standby task becomes active",
        ("a3", 0),
        "m1 p1: | a2, m2 p2: | a1, m3 p3: | a0",
        "m1: a2, m2: a1, m3: a0",
    ),
    (
        "a standby task is not where its active task is",
        ("a2", 1),
        "m1 p1: | a0, m2 p2: | a1",
        "m1: a0 | a1, m2: a1 | a0",
    ),
    (
        "the member with less load becomes active",
        ("a3", 0),
        "m1 p1: a0 | a1, m2 p2: a2 | a1, m3 p2:",
        "m1: a0, m2: a2, m3: a1",
    ),
    (
        "standby tasks are in other processes than active tasks",
        ("a4", 1),
        "m1 p1: a0, m2 p2: a1, m3 p3: a2, m4 p4: a3",
        "m1: a0 | a3, m2: a1 | a2, m3: a2 | a1, m4: a3 | a0",
    ),
    (
        "two standby replicas",
        ("a3", 2),
        "m1 p1: a0, m2 p2: a1, m3 p3: a2",
        "m1: a0 | a1 a2, m2: a1 | a0 a2, m3: a2 | a0 a1",
    ),
    (
        "one process has no standby tasks",
        ("a1", 1),
        "m1 p1:",
        "m1: a0",
    ),
    (
        "active and standby tasks",
        ("a3", 1),
        "m1 p1:, m2 p2:, m3 p3:",
        "m1: a0 | a2, m2: a1 | a0, m3: a2 | a1",
    ),
    (
        "each process gets a task if possible",
        ("a3", 0),
        "m1 p1:, m2 p1:, m3 p1:, m4 p2:, m5 p3:",
        "m1: a0, m2:, m3:, m4: a1, m5: a2",
    ),
    (
        "twice as many processes as tasks",
        ("a3", 0),
        "m1 p1:, m2 p2:, m3 p3:, m4 p4:, m5 p5:, m6 p6:",
        "m1: a0, m2: a1, m3: a2, m4:, m5:, m6:",
    ),
    (
        "active and standby tasks are balanced together",
        ("a3", 1),
        "m1 p1:, m2 p2:, m3 p3:, m4 p4:, m5 p5:, m6 p6:",
        "m1: a0, m2: a1, m3: a2, m4: | a2, m5: | a1, m6: | a0",
    ),
    (
        "more tasks to the process with more members",
        ("a3 b3 c3 d3", 0),
        "m1 p1:, m2 p2:, m3 p2:",
        "m1: a0 b0 c0 d0, m2: a1 b1 c1 d1, m3: a2 b2 c2 d2",
    ),
    (
        "as many members as tasks, all owned by one",
        ("a4", 0),
        "m1 p1:, m2 p2:, m3 p3: a0 a1 a2 a3, m4 p4:",
        "m1: a1, m2: a2, m3: a0, m4: a3",
    ),
    (
        "fewer members than tasks, all owned by one",
        ("a4", 0),
        "m1 p1:, m2 p2:, m3 p3: a0 a1 a2 a3",
        "m1: a2, m2: a3, m3: a0 a1",
    ),
    (
        "tasks move to the process with more members",
        ("a3", 0),
        "m2 p2: a0 a3 a2, m3 p3:, m4 p3:",
        "m2: a0, m3: a1, m4: a2",
    ),
    (
        "a new member gets one task",
        ("a4", 0),
        "m1 p1: a0 a2, m2 p2: a1 a3, m3 p3:",
        "m1: a0 a2, m2: a1, m3: a3",
    ),
    (
        "new tasks move nothing",
        ("a6", 0),
        "m1 p1: a0 a1, m2 p2: a2 a3",
        "m1: a0 a1 a4, m2: a2 a3 a5",
    ),
    (
        "new tasks go to the new member",
        ("a6", 0),
        "m1 p1: a2 a1, m2 p2: a0 a3, m3 p3:",
        "m1: a1 a2, m2: a0 a3, m3: a4 a5",
    ),
    (
        "tasks that nobody owned go to the new member",
        ("a4 b4 c4", 0),
        "m1 p1: a1 b2 b3 | a0 b1 c0 c1 c3, m2 p2: a0 b1 c2 | a1 a2 a3 b0 b2 b3 c0 c1 c3, "
        "m3 p3: c0 c1 c3 | a2 b2, m4 p4: | a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3",
        "m1: a1 b2 b3, m2: a0 b1 c2, m3: c0 c1 c3, m4: a2 a3 b0",
    ),
    (
        "tasks that nobody owned go to two new members",
        ("a4 b4 c4", 0),
        "m1 p1: a1 b2 b3 | a0 b1 c0 c1 c3, m2 p2: a0 b1 c2 | a1 a2 a3 b0 b2 b3 c0 c1 c3, "
        "m3 p3: | c0 c1 c3, m4 p4: | a2 a3 b0",
        "m1: a1 b2 b3, m2: a0 b1 c2, m3: c0 c1 c3, m4: a2 a3 b0",
    ),
    (
        "a new member of two tasks",
        ("a2", 0),
        "m1 p1: a1 a2, m2 p2:",
        "m1: a1, m2: a0",
    ),
    (
        "a new member, without moves between the others",
        ("a6", 0),
        "m1 p1: a0 a1 a2, m2 p2: a3 a4 a5, m3 p3:",
        "m1: a0 a1, m2: a3 a4, m3: a2 a5",
    ),
    (
        "a new member, without moves between one and a restarted one",
        ("a7", 0),
        "m1 p1: a0 a1 a2 a6, m2 p2: | a3 a4 a5, m3 p3:",
        "m1: a0 a1 a2, m2: a3 a4, m3: a5 a6",
    ),
    (
        "a node joins with standby tasks",
        ("a4", 1),
        "m1 p1: a0 a1 | a2 a3, m2 p2: a2 a3 | a0 a1, m3 p3:",
        "m1: a0 a1 | a2, m2: a2 | a1 a3, m3: a3 | a0",
    ),
    (
        "each member gets one task of each subtopology when one joins",
        ("a2 b2", 1),
        "m1 p1: a0 a1 b0 b1, m2 p2:",
        "m1: a0 b0 | a1 b1, m2: a1 b1 | a0 b0",
    ),
    (
        "each member gets one task of each subtopology at the start",
        ("a2 b2", 1),
        "m1 p1:, m2 p2:",
        "m1: a0 b0 | a1 b1, m2: a1 b1 | a0 b0",
    ),
    (
        "a standby task stays below the share",
        ("a2", 1),
        "m1 p1: a0 | a1, m2 p2: a1, m3 p3:",
        "m1: a0 | a1, m2: a1, m3: | a0",
    ),
    (
        "a standby task stays where its active task isn't",
        ("a3", 1),
        "m1 p1: | a2, m2 p2: a0 | a2, m3 p3: a1, m4 p4:",
        "m1: a2 | a0, m2: a0 | a2, m3: a1, m4: | a1",
    ),
    (
        "tasks go to the state on disks after a restart of all",
        ("a4", 0),
        "m1 p1: | | a0=100 a1=100, m2 p2: | | a2=100 a3=100",
        "m1: a0 a1, m2: a2 a3",
    ),
    (
        "tasks go to the state on disks, with two members in each process",
        ("a4", 0),
        "m1 p1: | | a0=100 a1=100, m2 p1: | | a0=100 a1=100, m3 p2: | | a2=100 a3=100, m4 p2: | | a2=100 a3=100",
        "m1: a0, m2: a1, m3: a2, m4: a3",
    ),
    (
        "owners come before state on disks, and more state before less",
        ("a4", 0),
        "m1 p1: a0, m2 p2: | a0 a1, m3 p3: | | a0=1000000 a1=1000000 a2=100, m4 p4: | | a2=50",
        "m1: a0, m2: a1, m3: a2, m4: a3",
    ),
    (
        "standby tasks are not where the state on disks is used",
        ("a2", 1),
        "m1 p1: | | a0=100, m2 p2: | | a1=100",
        "m1: a0 | a1, m2: a1 | a0",
    ),
    (
        "the standby task with more state becomes active",
        ("a1", 0),
        "m1 p1: | a0 | a0=10, m2 p2: | a0 | a0=20",
        "m1:, m2: a0",
    ),
)


Topology = Mapping[str, ConfiguredSubtopology]


def subtopology(task_count: int, stateful: bool) -> ConfiguredSubtopology:
    changelogs = {"changelog": InternalTopicInfo("changelog")} if stateful else {}
    return ConfiguredSubtopology(task_count, changelogs=changelogs)


def topology(text: str, *, stateful: bool = True) -> dict[str, ConfiguredSubtopology]:
    """Returns subtopologies from their ids and task counts: `a3 b1`."""
    return {part[0]: subtopology(int(part[1:]), stateful) for part in text.split()}


def task(text: str) -> TaskId:
    return TaskId(text[0], int(text[1:]))


def tasks(text: str) -> Tasks:
    return Tasks.of(map(task, text.split()))


def members(text: str) -> dict[str, StreamsMemberSpec]:
    """Returns the members of a case."""
    read: dict[str, StreamsMemberSpec] = {}
    for line in text.split(", "):
        name, _, rest = line.partition(":")
        member_id, process_id = name.split()
        active, standby, offsets = [*rest.split("|"), "", ""][:3]
        on_disk = {task(entry): int(offset) for entry, offset in re.findall(r"(\w+)=(\d+)", offsets)}
        read[member_id] = StreamsMemberSpec(process_id, TaskAssignment(tasks(active), tasks(standby)), on_disk)
    return read


def shown(assigned: Mapping[str, TaskAssignment]) -> str:
    """Returns an assignment as the cases write it."""

    def names(entries: Tasks) -> str:
        return "".join(f" {subtopology_id}{partition}" for subtopology_id, partition in entries)

    lines = [f"{member}:{names(share.active)} |{names(share.standby)}" for member, share in sorted(assigned.items())]
    return ", ".join(line.removesuffix(" |") for line in lines)


def check_valid(spec: StreamsGroupSpec, subtopologies: Topology, assigned: Mapping[str, TaskAssignment]) -> None:
    """Checks that each task is active once, and that its replicas are in different processes, as many as possible."""
    every = [
        TaskId(name, index) for name, subtopology in subtopologies.items() for index in range(subtopology.task_count)
    ]
    assert sorted(active for share in assigned.values() for active in share.active) == sorted(every)
    assert assigned.keys() == spec.members.keys()
    assert all(share.warmup == NO_TASKS for share in assigned.values())
    processes: dict[TaskId, list[str]] = {name: [] for name in every}
    for member_id, share in assigned.items():
        for name in (*share.active, *share.standby):
            processes[name].append(spec.members[member_id].process_id)
    present = len({member.process_id for member in spec.members.values()})
    for name, having in processes.items():
        replicas = spec.standby_replicas if subtopologies[name.subtopology_id].is_stateful else 0
        assert len(having) == len(set(having)) == min(replicas + 1, present)


def after(spec: StreamsGroupSpec, assigned: Mapping[str, TaskAssignment]) -> StreamsGroupSpec:
    """Returns the group once its members have their tasks."""
    return spec._replace(
        members={member_id: member._replace(assigned=assigned[member_id]) for member_id, member in spec.members.items()}
    )


@pytest.mark.parametrize(("group", "before", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_case_of_kafka(group: tuple[str, int], before: str, expected: str) -> None:
    text, replicas = group
    spec = StreamsGroupSpec(members(before), replicas)
    assigned = assign_sticky(spec, topology(text))
    check_valid(spec, topology(text), assigned)
    assert shown(assigned) == expected


@pytest.mark.parametrize(
    ("text", "count", "replicas"),
    [("a100", 5, 2), ("a14", 7, 1), ("a6", 3, 5), ("a5 b5 c5 d5 e5 f5 g5 h5 i5 j5", 4, 1), ("a10", 1, 3), ("a4", 2, 5)],
)
def test_a_new_group_is_balanced(text: str, count: int, replicas: int) -> None:
    spec = StreamsGroupSpec({f"m{index}": StreamsMemberSpec(f"p{index}") for index in range(count)}, replicas)
    assigned = assign_sticky(spec, topology(text))
    check_valid(spec, topology(text), assigned)
    for sizes in zip(*((len(share.active), len(share.standby)) for share in assigned.values()), strict=True):
        assert max(sizes) - min(sizes) <= 1


def test_a_stateless_subtopology_has_no_standby_tasks() -> None:
    spec = StreamsGroupSpec(members("m1 p1:, m2 p2:"), 1)
    subtopologies = topology("a2") | topology("b2", stateful=False)
    assigned = assign_sticky(spec, subtopologies)
    assert shown(assigned) == "m1: a0 b0 | a1, m2: a1 b1 | a0"


def test_state_of_tasks_that_are_gone_is_ignored() -> None:
    spec = StreamsGroupSpec(members("m1 p1: a7 z0 | a8 | a9=5 y1=5, m2 p2:"), 1)
    assert shown(assign_sticky(spec, topology("a2"))) == "m1: a0 | a1, m2: a1 | a0"


def test_an_empty_group_has_no_assignment() -> None:
    assert assign_sticky(StreamsGroupSpec({}), topology("a2")) == {}


def test_an_empty_topology_gives_members_nothing() -> None:
    assert shown(assign_sticky(StreamsGroupSpec(members("m1 p1: a0"), 1), {})) == "m1:"


some_topologies = st.dictionaries(
    st.sampled_from("abcd"), st.builds(subtopology, st.integers(1, 9), st.booleans()), max_size=4
)
some_tasks = st.builds(
    Tasks, st.dictionaries(st.sampled_from("abcz"), st.sets(st.integers(0, 9), max_size=5), max_size=3)
)
some_members = st.dictionaries(
    st.sampled_from([f"m{index}" for index in range(9)]),
    st.builds(
        StreamsMemberSpec,
        st.sampled_from(["p0", "p1", "p2", "p3"]),
        st.builds(TaskAssignment, some_tasks, some_tasks, some_tasks),
        st.dictionaries(st.builds(TaskId, st.sampled_from("abz"), st.integers(0, 9)), st.integers(-(2**63), 2**63 - 1)),
    ),
    min_size=1,
)


few = settings(max_examples=40)


def apart(claims: Mapping[str, StreamsMemberSpec]) -> dict[str, StreamsMemberSpec]:
    """Returns the members, each in its own process."""
    return {name: member._replace(process_id=name) for name, member in claims.items()}


@few
@given(some_members, st.integers(0, 3), some_topologies)
def test_any_claims_get_a_valid_assignment(
    claims: dict[str, StreamsMemberSpec], replicas: int, subtopologies: Topology
) -> None:
    spec = StreamsGroupSpec(claims, replicas)
    assigned = assign_sticky(spec, subtopologies)
    check_valid(spec, subtopologies, assigned)
    backwards = StreamsGroupSpec(dict(reversed(claims.items())), replicas)
    assert assign_sticky(backwards, subtopologies) == assigned


@few
@given(some_members, st.integers(0, 3), some_topologies)
def test_processes_of_one_member_are_balanced_and_then_keep_their_active_tasks(
    claims: dict[str, StreamsMemberSpec], replicas: int, subtopologies: Topology
) -> None:
    spec = StreamsGroupSpec(apart(claims), replicas)
    assigned = assign_sticky(spec, subtopologies)
    sizes = [len(share.active) for share in assigned.values()]
    assert max(sizes) - min(sizes) <= 1
    again = assign_sticky(after(spec, assigned), subtopologies)
    assert {name: share.active for name, share in again.items()} == {
        name: share.active for name, share in assigned.items()
    }


@few
@given(st.integers(2, 12), st.integers(1, 30))
def test_a_member_that_joins_gets_its_share_and_nothing_else_moves(count: int, task_count: int) -> None:
    subtopologies = topology(f"a{task_count}")
    spec = StreamsGroupSpec({f"m{index}": StreamsMemberSpec(f"p{index}") for index in range(count)})
    before = after(spec, assign_sticky(spec, subtopologies))
    joined = StreamsGroupSpec({**before.members, "new": StreamsMemberSpec("new")})
    assigned = assign_sticky(joined, subtopologies)
    assert all((assigned[name].active - member.assigned.active).is_empty for name, member in before.members.items())
    assert len(assigned["new"].active) in (task_count // (count + 1), -(-task_count // (count + 1)))


def test_the_work_is_proportional_to_the_tasks() -> None:
    def work(size: int) -> int:
        spec = StreamsGroupSpec({f"m{index}": StreamsMemberSpec(f"p{index // 3}") for index in range(size)}, 2)
        subtopologies = topology(f"a{size * 5} b{size * 5}")
        spec = after(spec, assign_sticky(spec, subtopologies))
        spec = StreamsGroupSpec({name: member for name, member in spec.members.items() if name != "m0"}, 2)
        return lines_run(lambda: assign_sticky(spec, subtopologies))

    small, large = work(5), work(50)
    assert large < 13 * small
