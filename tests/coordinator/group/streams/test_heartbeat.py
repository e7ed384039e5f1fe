"""Tests heartbeats of streams groups: joining, assignments, statuses, sessions and leaving, record by record."""

from __future__ import annotations

import pytest

from coordinator.group.group import GroupType
from coordinator.group.groups import GroupFilter, delete_groups, list_groups
from coordinator.group.state import Client
from coordinator.group.streams.requests import MAX_NAMES
from coordinator.group.streams.task_offsets import MAX_OFFSETS, NO_OFFSETS, TaskOffsets
from coordinator.group.streams.tasks import TaskId
from coordinator.group.streams.update import MAX_TASKS
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskOffset, Topology
from tests.coordinator.group.streams.world import DELAY_MS, StreamsGroups, active, codes, topology
from tests.coordinator.group.world import GROUP, SOON_MS

ADMIN = Client(5)


def test_the_first_member_joins_and_its_tasks_are_delayed() -> None:
    groups = StreamsGroups()
    heard = groups.enter("m1")
    assert groups.kinds == ["MemberMetadata", "Topology", "Metadata", "CurrentMemberAssignment"]
    assert (heard.response.member_epoch, active(heard), codes(heard)) == (1, {}, [5])
    assert groups.streams.type is GroupType.STREAMS
    assert groups.streams.state_name == "Assigning"


def test_after_the_delay_all_members_get_their_tasks() -> None:
    groups = StreamsGroups()
    groups.enter("m1")
    groups.enter("m2")
    assert len(groups.advance(DELAY_MS - 1)) == 0
    groups.advance(1)
    assert groups.kinds == ["TargetAssignmentMember", "TargetAssignmentMember", "TargetAssignmentMetadata"]
    first, second = groups.beat("m1", 1), groups.beat("m2", 1)
    assert [active(first), active(second)] == [{"0": [0]}, {"0": [1]}]
    assert (first.response.member_epoch, codes(first)) == (3, [])
    assert groups.streams.state_name == "Stable"


def test_a_heartbeat_without_news_writes_nothing() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    heard = groups.beat("m1", 2)
    assert (groups.kinds, active(heard), heard.response.member_epoch) == ([], None, 2)
    assert heard.response.heartbeat_interval_ms == 5_000
    assert (heard.response.task_offset_interval_ms, heard.response.acceptable_recovery_lag) == (60_000, 10_000)


def test_a_second_member_gets_a_task_once_the_first_has_given_it_up() -> None:
    groups = StreamsGroups()
    assert active(groups.settled("m1")) == {"0": [0, 1]}
    groups.now_ms += SOON_MS
    heard = groups.enter("m2")
    assert (active(heard), heard.response.member_epoch) == ({}, 3)
    assert groups.streams.state_name == "Reconciling"
    heard = groups.beat("m1", 2, owned={"0": [0, 1]})
    assert (active(heard), heard.response.member_epoch) == ({"0": [0]}, 2)
    assert active(groups.beat("m2", 3)) is None
    heard = groups.beat("m1", 2, owned={"0": [0]})
    assert (active(heard), heard.response.member_epoch) == (None, 3)
    assert active(groups.beat("m2", 3)) == {"0": [1]}
    assert groups.streams.state_name == "Stable"


def test_a_member_that_keeps_a_task_for_too_long_is_fenced() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.now_ms += SOON_MS
    groups.enter("m2")
    groups.beat("m1", 2, owned={"0": [0, 1]})
    groups.advance(5_000)
    assert groups.kinds == ["-CurrentMemberAssignment", "-TargetAssignmentMember", "-MemberMetadata", "Metadata"]
    with pytest.raises(KafkaError) as error:
        groups.beat("m1", 2)
    assert error.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_is_fenced_when_its_session_is_over_also_after_a_load() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.reload()
    groups.advance(44_999)
    assert "m1" in groups.streams.members
    groups.advance(1)
    assert groups.streams.state_name == "Empty"


def test_a_new_target_assignment_waits_for_the_interval() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    heard = groups.enter("m2")
    assert (codes(heard), active(heard)) == ([5], {})
    groups.now_ms += SOON_MS
    assert codes(groups.beat("m2", heard.response.member_epoch)) == []


def test_missing_source_topics_are_a_status_and_the_group_is_not_ready() -> None:
    groups = StreamsGroups()
    heard = groups.settled("m1", topology(sources=["absent"]))
    assert [(status.status_code, status.status_detail) for status in heard.response.status or ()] == [
        (1, "Source topics absent are missing.")
    ]
    assert (groups.streams.state_name, active(heard)) == ("NotReady", None)
    groups.create_topic("absent", 1)
    groups.now_ms += SOON_MS
    assert active(groups.beat("m1", 2)) == {"0": [0]}
    assert groups.streams.state_name == "Stable"


def test_internal_topics_are_requested_until_they_exist() -> None:
    groups = StreamsGroups()
    heard = groups.settled("m1", topology(changelogs=["changelog"]))
    assert codes(heard) == [3]
    assert {name: topic.num_partitions for name, topic in heard.missing.items()} == {"changelog": 2}
    groups.create_topic("changelog", 2)
    groups.now_ms += SOON_MS
    heard = groups.beat("m1", 2)
    assert (codes(heard), heard.missing, active(heard)) == ([], {}, {"0": [0, 1]})


def test_another_topology_is_rejected_and_an_older_epoch_is_stale() -> None:
    groups = StreamsGroups()
    groups.settled("m1", topology(epoch=1))
    for different in (topology(epoch=1, sources=["other"]), topology(epoch=2)):
        with pytest.raises(KafkaError, match="Topology updates are not supported yet") as error:
            groups.enter("m2", different)
        assert error.value.code is ErrorCode.INVALID_REQUEST
    groups.now_ms += SOON_MS
    assert codes(groups.enter("m2", topology(epoch=0, sources=["other"]))) == [0]


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_wrong_epoch_is_fenced(epoch: int) -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    with pytest.raises(KafkaError) as error:
        groups.beat("m1", epoch)
    assert error.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert "The streams group member has a" in error.value.message


def test_the_previous_epoch_is_valid_with_tasks_of_the_assignment() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    assert groups.beat("m1", 1, owned={}).response.member_epoch == 2


@pytest.mark.parametrize("owned", [{"1": [0]}, {"0": [2]}, {"0": [-1]}])
def test_tasks_that_the_topology_does_not_have_are_rejected(owned: dict[str, list[int]]) -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    with pytest.raises(KafkaError) as error:
        groups.beat("m1", 2, owned=owned)
    assert error.value.code is ErrorCode.INVALID_REQUEST


def test_a_group_has_a_maximum_size() -> None:
    groups = StreamsGroups(group_streams_max_size=1)
    groups.settled("m1")
    with pytest.raises(KafkaError, match="maximum capacity of 1 members") as error:
        groups.enter("m2")
    assert error.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    groups.enter("m1")


def test_the_last_member_leaves_and_the_next_first_assignment_is_delayed_again() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    heard = groups.beat("m1", -1)
    assert groups.kinds == [
        "-CurrentMemberAssignment", "-TargetAssignmentMember", "-MemberMetadata", "Metadata",
        "TargetAssignmentMetadata",
    ]  # fmt: skip
    assert (heard.response.member_epoch, heard.response.status) == (-1, [])
    assert groups.streams.state_name == "Empty"
    assert codes(groups.enter("m2")) == [5]


def test_a_group_without_delay_assigns_at_once() -> None:
    groups = StreamsGroups({"streams.initial.rebalance.delay.ms": "0"})
    heard = groups.enter("m1")
    assert (active(heard), codes(heard), heard.response.member_epoch) == ({"0": [0, 1]}, [], 2)


def test_standby_tasks_go_to_another_process() -> None:
    groups = StreamsGroups({"streams.num.standby.replicas": "1"})
    groups.create_topic("changelog", 2)
    stateful = topology(changelogs=["changelog"])
    groups.enter("m1", stateful)
    groups.enter("m2", stateful)
    groups.advance(DELAY_MS)
    heard = groups.beat("m1", 1)
    standby = {entry.subtopology_id: entry.partitions for entry in heard.response.standby_tasks or ()}
    assert (active(heard), standby) == ({"0": [0]}, {"0": [1]})


def test_new_options_of_the_assignor_make_a_new_assignment() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.config = groups.config.parse({"streams.num.standby.replicas": "1"})
    groups.now_ms += SOON_MS
    groups.beat("m1", 2)
    assert groups.kinds == ["Metadata", "TargetAssignmentMetadata", "CurrentMemberAssignment"]
    assert groups.streams.description.assignment_configs == {"num.standby.replicas": "1"}


def test_the_shutdown_of_the_application_is_told_to_all_members_until_the_group_is_empty() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.now_ms += SOON_MS
    groups.enter("m2")
    groups.beat("m2", -1, shutdown_application=True)
    heard = groups.beat("m1", 2)
    assert codes(heard)[-1] == 4
    assert (heard.response.status or [])[-1].status_detail.startswith("Streams group member m2 encountered a fatal")
    groups.beat("m1", -1)
    assert 4 not in codes(groups.enter("m3"))


def test_missing_client_tags_are_a_status_since_version_1() -> None:
    groups = StreamsGroups({"streams.rack.aware.assignment.tags": "zone,cluster"})
    tags = [KeyValue(key="zone", value="a")]
    assert codes(groups.enter("m1", client_tags=tags, version=0)) == [5]
    heard = groups.beat("m1", 1)
    assert codes(heard) == [5, 6]
    assert "[cluster]" in (heard.response.status or [])[-1].status_detail


def test_endpoints_are_told_when_they_or_their_tasks_have_changed() -> None:
    groups = StreamsGroups()
    heard = groups.settled("m1", user_endpoint=Endpoint(host="here", port=80))
    (entry,) = heard.response.partitions_by_user_endpoint or []
    assert (entry.user_endpoint.host, entry.user_endpoint.port) == ("here", 80)
    assert [(topic.topic, topic.partitions) for topic in entry.active_partitions] == [("topic", [0, 1])]
    assert heard.response.endpoint_information_epoch == 1
    assert groups.beat("m1", 2, endpoint_information_epoch=1).response.partitions_by_user_endpoint is None


def test_offsets_of_tasks_are_described_and_unknown_tasks_ignored() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    offsets = [TaskOffset(subtopology_id=name, partition=1, offset=9) for name in ("0", "1")]
    groups.beat("m1", 2, task_offsets=offsets)
    (member,) = groups.described().members
    assert [(entry.subtopology_id, entry.partition, entry.offset) for entry in member.task_offsets] == [("0", 1, 9)]
    with pytest.raises(KafkaError, match="duplicate entry"):
        groups.beat("m1", 2, task_end_offsets=[offsets[0], offsets[0]])


def test_a_loaded_group_continues_where_it_was() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    groups.reload()
    assert groups.streams.state_name == "Stable"
    heard = groups.beat("m1", 2, owned={"0": [0, 1]})
    assert (groups.kinds, heard.response.member_epoch, heard.response.error_code) == ([], 2, 0)


def test_a_group_is_described_with_its_topology_and_tasks() -> None:
    groups = StreamsGroups()
    groups.settled("m1", topology(epoch=3), client_tags=[KeyValue(key="zone", value="a")], rack_id="rack")
    group = groups.described()
    assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Stable", 2, 2)
    assert group.assignor_name == "sticky"
    assert group.topology is not None
    assert group.topology.epoch == 3
    (member,) = group.members
    assert (member.member_id, member.process_id, member.rack_id, member.topology_epoch) == ("m1", "m1", "rack", 3)
    for assignment in (member.assignment, member.target_assignment):
        assert [(entry.subtopology_id, entry.partitions) for entry in assignment.active_tasks] == [("0", [0, 1])]


def test_groups_are_listed_and_only_empty_groups_are_deleted() -> None:
    groups = StreamsGroups()
    groups.settled("m1")
    wanted = GroupFilter(frozenset({"stable"}), frozenset({"streams"}), [GROUP, "deleted"])
    (listed,) = groups.ask(list_groups, wanted, ADMIN).answer
    assert (listed.group_id, listed.protocol_type, listed.group_type) == (GROUP, "streams", "streams")
    (deletion,) = groups.ask(delete_groups, [GROUP], ADMIN).answer
    assert deletion.error_code == ErrorCode.NON_EMPTY_GROUP
    groups.beat("m1", -1)
    (deletion,) = groups.ask(delete_groups, [GROUP], ADMIN).answer
    assert (deletion.error_code, groups.kinds) == (0, ["-TargetAssignmentMetadata", "-Topology", "-Metadata"])
    assert GROUP not in groups.shard.state.groups


def wide(subtopologies: int) -> Topology:
    """Returns a topology whose subtopologies all read the topic "large"."""
    described = topology()
    described.subtopologies = [
        described.subtopologies[0].__class__(
            subtopology_id=str(number), source_topics=["large"], source_topic_regex=[], state_changelog_topics=[],
            repartition_sink_topics=[], repartition_source_topics=[], copartition_groups=[],
        )
        for number in range(subtopologies)
    ]  # fmt: skip
    return described


@pytest.mark.parametrize(("subtopologies", "message"), [(2_000, "at most 250,000"), (251, "at most 50,000")])
def test_too_many_tasks_are_rejected_before_they_are_assigned(subtopologies: int, message: str) -> None:
    groups = StreamsGroups()
    groups.create_topic("large", 200)
    with pytest.raises(KafkaError, match=message) as error:
        groups.enter("m1", wide(subtopologies))
    assert error.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_member_can_have_all_tasks_that_a_topology_may_have() -> None:
    groups = StreamsGroups()
    groups.is_doubling = False  # with 50,000 tasks it takes seconds
    groups.create_topic("large", 200)
    tasks = active(groups.settled("m1", wide(MAX_TASKS // 200)))
    assert tasks is not None
    assert sum(map(len, tasks.values())) == MAX_TASKS


def test_a_group_remembers_only_so_many_task_offsets() -> None:
    groups = StreamsGroups()
    groups.enter("m1")
    groups.enter("m2")
    most = TaskOffsets({TaskId("0", number): 1 for number in range(MAX_OFFSETS - 1)})
    few = TaskOffsets({TaskId("0", 0): 1}, {TaskId("0", 0): 1})
    for member, offsets in (("m1", most), ("m1", most), ("m2", few)):
        groups.streams.note_task_offsets(member, offsets)
    assert [groups.streams.offsets_of(member) for member in ("m1", "m2")] == [most, NO_OFFSETS]
    groups.streams.note_task_offsets("m1", few)
    groups.streams.note_task_offsets("m2", few)
    assert groups.streams.offsets_of("m2") == few


def test_a_topology_has_only_so_many_names() -> None:
    groups = StreamsGroups()
    groups.is_doubling = False  # with 10,000 topics it takes seconds
    names = [str(number) for number in range(MAX_NAMES - 1)]
    with pytest.raises(KafkaError, match="at most 10,000") as error:
        groups.enter("m1", topology(changelogs=names))
    assert error.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert len(groups.enter("m1", topology(changelogs=names[1:])).missing) == len(names) - 1
