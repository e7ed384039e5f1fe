"""Tests ConsumerGroupHeartbeat: exact records and answers, step by step through rebalances."""

from __future__ import annotations

import pytest

from coordinator.group.consumer import records
from coordinator.group.consumer.member import Member, MemberState
from coordinator.group.modern.requests import MAX_TOPIC_NAMES
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.coordinator.driver import START_MS
from tests.coordinator.group.world import GROUP, SOON_MS, Groups, assigned

MEMBER = Member(
    "a",
    rebalance_timeout_ms=5_000,
    client_id="client",
    client_host="/127.0.0.1",
    topic_names=frozenset({"foo"}),
)


@pytest.fixture
def groups() -> Groups:
    return Groups()


def test_the_first_member_makes_the_group_and_gets_all_partitions(groups: Groups) -> None:
    foo = groups.create_topic("foo", 3)
    response = groups.join("a", ["foo"])
    assert response == ConsumerGroupHeartbeatResponse(
        error_code=0, member_id="a", member_epoch=2, heartbeat_interval_ms=5_000, assignment=response.assignment
    )
    assert assigned(response) == {foo: [0, 1, 2]}
    target = {foo: frozenset({0, 1, 2})}
    assert groups.written == [
        records.COMMON.member(GROUP, MEMBER),
        records.COMMON.epoch(GROUP, 2, groups.watch.group_hash(["foo"])),
        records.COMMON.target(GROUP, "a", target),
        records.COMMON.target_epoch(GROUP, 2, START_MS),
        records.COMMON.current(
            GROUP, MEMBER._replace(member_epoch=2, previous_member_epoch=0, assigned={foo: {0: 2, 1: 2, 2: 2}})
        ),
    ]
    assert groups.group.state_name == "Stable"


def test_a_steady_member_writes_nothing_and_hears_nothing_new(groups: Groups) -> None:
    groups.create_topic("foo", 3)
    groups.join("a", ["foo"])
    response = groups.heartbeat("a", 2)
    assert (response.member_epoch, response.assignment, groups.written) == (2, None, [])


def test_a_full_request_is_answered_with_the_assignment(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    response = groups.heartbeat("a", 2, owned={foo: [0, 1]}, topics=["foo"], rebalance_timeout_ms=5_000)
    assert assigned(response) == {foo: [0, 1]}
    assert groups.written == []


def test_a_topic_that_is_dropped_is_revoked_at_once(groups: Groups) -> None:
    foo, bar = groups.create_topic("foo", 1), groups.create_topic("bar", 1)
    groups.join("a", ["foo", "bar"])
    assert groups.member("a").assigned == {foo: {0: 2}, bar: {0: 2}}
    response = groups.heartbeat("a", 2, owned={foo: [0]}, topics=["foo"])
    assert (response.member_epoch, assigned(response)) == (2, {foo: [0]})
    assert (groups.member("a").assigned, groups.member("a").pending_revocation) == ({foo: {0: 2}}, {})


def test_a_second_member_gets_partitions_once_the_first_has_given_them_up(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    joined = groups.join("b", ["foo"])
    assert (joined.member_epoch, assigned(joined)) == (3, {})
    assert groups.member("b").state is MemberState.UNRELEASED_PARTITIONS

    response = groups.heartbeat("a", 2, owned={foo: [0, 1]})
    assert (response.member_epoch, assigned(response)) == (2, {foo: [0]})
    revoking = groups.member("a")
    assert revoking.state is MemberState.UNREVOKED_PARTITIONS
    assert groups.written == [records.COMMON.current(GROUP, revoking)]
    assert (revoking.assigned, revoking.pending_revocation) == ({foo: {0: 2}}, {foo: {1: 2}})
    assert groups.group.state_name == "Reconciling"

    groups.heartbeat("b", 3)
    assert groups.written == [records.COMMON.current(GROUP, groups.member("b"))]  # it has heard of its epoch
    waiting = groups.heartbeat("b", 3)
    assert (waiting.member_epoch, waiting.assignment, groups.written) == (3, None, [])

    done = groups.heartbeat("a", 2, owned={foo: [0]})
    assert (done.member_epoch, done.assignment) == (3, None)
    assert groups.member("a").state is MemberState.STABLE

    got = groups.heartbeat("b", 3)
    assert assigned(got) == {foo: [1]}
    assert groups.member("b").assigned == {foo: {1: 3}}
    assert groups.group.state_name == "Stable"


def test_a_target_is_not_computed_twice_within_the_assignment_interval(groups: Groups) -> None:
    groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS - 1)
    early = groups.join("b", ["foo"])
    assert (early.member_epoch, assigned(early)) == (2, {})
    assert (groups.group.epoch, groups.group.assignment_epoch) == (3, 2)
    assert groups.group.state_name == "Assigning"
    groups.advance(1)
    assert groups.heartbeat("b", 2).member_epoch == 3
    assert groups.group.assignment_epoch == 3


def test_new_partitions_of_a_topic_are_another_epoch_at_the_next_heartbeat(groups: Groups) -> None:
    foo = groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    groups.add_partitions("foo", 1)
    response = groups.heartbeat("a", 2)
    assert (response.member_epoch, assigned(response)) == (3, {foo: [0, 1]})
    assert groups.member("a").assigned == {foo: {0: 2, 1: 3}}


def test_a_topic_that_comes_later_is_assigned_then(groups: Groups) -> None:
    assert assigned(groups.join("a", ["foo"])) == {}
    assert groups.group.metadata_hash == 0
    foo = groups.create_topic("foo", 1)
    groups.advance(SOON_MS)
    assert assigned(groups.heartbeat("a", 2)) == {foo: [0]}


def test_a_deleted_topic_is_given_up(groups: Groups) -> None:
    foo = groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    groups.delete_topic("foo")
    groups.advance(SOON_MS)
    assert assigned(groups.heartbeat("a", 2, owned={foo: [0]})) == {}
    assert groups.heartbeat("a", 2, owned={}).member_epoch == 3


def test_a_changed_subscription_gives_topics_up_before_there_is_a_target_without_them(groups: Groups) -> None:
    foo, bar = groups.create_topic("foo", 1), groups.create_topic("bar", 1)
    groups.join("a", ["foo", "bar"])
    response = groups.heartbeat("a", 2, owned={foo: [0], bar: [0]}, topics=["bar"])
    assert assigned(response) == {bar: [0]}
    member = groups.member("a")
    assert (member.state, member.pending_revocation) == (MemberState.UNREVOKED_PARTITIONS, {foo: {0: 2}})
    assert groups.group.assignment_epoch == 2


def test_a_lost_answer_costs_nothing(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    groups.join("b", ["foo"])
    groups.heartbeat("a", 2, owned={foo: [0, 1]})
    groups.heartbeat("a", 2, owned={foo: [0]})  # its answer, epoch 3, is lost
    assert groups.heartbeat("a", 2, owned={foo: [0]}).member_epoch == 3
    assert groups.refusal(lambda: groups.heartbeat("a", 2, owned={foo: [0, 1]}))[0] is ErrorCode.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("epoch", [1, 3])
def test_another_epoch_is_fenced(groups: Groups, epoch: int) -> None:
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    assert groups.refusal(lambda: groups.heartbeat("a", epoch))[0] is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_joins_again_keeps_its_partitions(groups: Groups) -> None:
    foo = groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    response = groups.join("a", ["foo"])
    assert (response.member_epoch, assigned(response), groups.written) == (2, {foo: [0]}, [])


def test_a_member_that_leaves_is_gone_and_its_partitions_go_to_others(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    groups.join("b", ["foo"])
    left = groups.heartbeat("a", -1)
    assert (left.member_id, left.member_epoch) == ("a", -1)
    assert groups.written == [
        records.COMMON.current_gone(GROUP, "a"),
        records.COMMON.target_gone(GROUP, "a"),
        records.COMMON.member_gone(GROUP, "a"),
        records.COMMON.epoch(GROUP, 4, groups.watch.group_hash(["foo"])),
    ]
    groups.advance(SOON_MS)
    assert assigned(groups.heartbeat("b", 3)) == {foo: [0, 1]}


def test_the_last_member_leaves_an_empty_group(groups: Groups) -> None:
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    groups.heartbeat("a", -1)
    assert groups.group.state_name == "Empty"
    assert groups.group.metadata_hash == 0


def test_a_silent_member_is_fenced(groups: Groups) -> None:
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    assert groups.advance(44_999) == []
    groups.heartbeat("a", 2)
    assert groups.advance(44_999) == []
    assert groups.advance(1) == [
        *records.COMMON.all_of_member_gone(GROUP, "a"),
        records.COMMON.epoch(GROUP, 3, 0),
        records.COMMON.target_epoch(GROUP, 3, 0),
    ]
    assert groups.refusal(lambda: groups.heartbeat("a", 2))[0] is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_fenced(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    groups.join("b", ["foo"])
    groups.heartbeat("a", 2, owned={foo: [0, 1]})
    assert groups.advance(4_999) == []
    groups.heartbeat("a", 2)
    groups.advance(1)
    assert list(groups.group.members) == ["b"]


def test_a_member_that_gave_up_in_time_is_not_fenced(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    groups.join("b", ["foo"])
    groups.heartbeat("a", 2, owned={foo: [0, 1]})
    groups.heartbeat("a", 2, owned={foo: [0]})
    assert groups.advance(5_000) == []


def test_what_a_loaded_group_has_to_do_in_time_is_timed_anew(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    groups.join("b", ["foo"])
    groups.heartbeat("a", 2, owned={foo: [0, 1]})
    before = repr(groups.group), groups.group.members, groups.group.targets, groups.group.owners
    groups.reload()
    assert (repr(groups.group), groups.group.members, groups.group.targets, groups.group.owners) == before
    groups.advance(5_000)
    assert list(groups.group.members) == ["b"]
    groups.advance(40_000)
    assert list(groups.group.members) == []


def test_a_full_group_takes_nobody_new() -> None:
    groups = Groups(group_consumer_max_size=1)
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    assert groups.refusal(lambda: groups.join("b", ["foo"])) == (
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "The consumer group has reached its maximum capacity of 1 members.",
    )
    assert groups.join("a", ["foo"]).member_epoch == 2


def test_version_0_members_get_an_id(groups: Groups) -> None:
    response = groups.join("", ["foo"], version=0)
    assert response.member_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert list(groups.group.members) == [response.member_id]


def test_the_assignor_that_most_members_ask_for_assigns(groups: Groups) -> None:
    foo, bar = groups.create_topic("foo", 2), groups.create_topic("bar", 2)
    groups.join("a", ["foo", "bar"], server_assignor="range")
    groups.advance(SOON_MS)
    groups.join("b", ["foo", "bar"])
    assert groups.group.target("a") == {foo: frozenset({0}), bar: frozenset({0})}
    assert groups.group.preferred_assignor() == "range"


def test_another_preferred_assignor_is_another_epoch(groups: Groups) -> None:
    groups.create_topic("foo", 2)
    groups.join("a", ["foo"])
    groups.advance(SOON_MS)
    assert groups.heartbeat("a", 2, server_assignor="uniform").member_epoch == 2, "it is the default"
    assert groups.heartbeat("a", 2, server_assignor="range").member_epoch == 3
    assert groups.heartbeat("a", 3).member_epoch == 3


def test_the_first_assignor_in_javas_order_assigns_if_votes_are_equal(groups: Groups) -> None:
    groups.create_topic("foo", 2)
    groups.join("a", ["foo"], server_assignor="range")
    groups.join("b", ["foo"], server_assignor="uniform")
    assert groups.group.preferred_assignor() == "uniform"


def test_a_broker_option_decides_the_default_assignor() -> None:
    groups = Groups(group_consumer_assignors=("range", "uniform"))
    foo, bar = groups.create_topic("foo", 1), groups.create_topic("bar", 1)
    groups.join("a", ["foo", "bar"])
    groups.advance(SOON_MS)
    groups.join("b", ["foo", "bar"])
    assert groups.group.target("a") == {foo: frozenset({0}), bar: frozenset({0})}


def test_options_of_the_group_set_its_intervals(groups: Groups) -> None:
    groups.config = type(groups.config).parse(
        {"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "50000"}
    )
    groups.create_topic("foo", 1)
    assert groups.join("a", ["foo"]).heartbeat_interval_ms == 7_000
    assert groups.advance(49_999) == []
    assert groups.advance(1)


def test_a_record_of_kafka_4_0_is_deleted(groups: Groups) -> None:
    groups.create_topic("foo", 1)
    groups.join("a", ["foo"])
    groups.group.has_partition_metadata = True
    groups.heartbeat("a", 2, topics=["foo", "bar"])
    assert groups.written[-1] == records.partition_metadata_gone(GROUP)
    assert not groups.group.has_partition_metadata


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"owned": {bytes(16): [1]}}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topics": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(groups: Groups, fields: dict[str, object], message: str) -> None:
    fields_sent = {"member_id": "a", "topics": ["foo"], **fields}
    assert groups.refusal(lambda: groups.join(**fields_sent)) == (ErrorCode.INVALID_REQUEST, message)  # type: ignore[arg-type]


def test_other_requests_that_make_no_sense_are_refused(groups: Groups) -> None:
    assert groups.refusal(lambda: groups.heartbeat("a", -2)) == (
        ErrorCode.INVALID_REQUEST,
        "InstanceId can't be null.",
    )
    assert groups.refusal(lambda: groups.heartbeat("a", -3)) == (ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    assert groups.refusal(lambda: groups.join("a", ["foo"], server_assignor="mine")) == (
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor mine is not supported. Supported assignors: uniform, range.",
    )
    assert groups.refusal(lambda: groups.heartbeat("a", 1))[0] is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.refusal(lambda: groups.heartbeat("a", -1))[0] is ErrorCode.GROUP_ID_NOT_FOUND


def test_the_members_of_a_group_name_only_so_many_topics(groups: Groups) -> None:
    """Without the limit, one heartbeat with 200,000 names would keep the broker's other clients waiting for a second.
    The members' common topics count once."""
    names = [f"topic-{number}" for number in range(MAX_TOPIC_NAMES + 1)]
    problem = (
        ErrorCode.INVALID_REQUEST,
        ("The members of a group can subscribe to at most 20,000 topics by name, not to 20,001."),
    )
    assert groups.refusal(lambda: groups.join("a", names)) == problem
    groups.join("a", names[1:])
    groups.advance(SOON_MS)
    epoch = groups.join("b", names[1:]).member_epoch
    assert groups.refusal(lambda: groups.join("c", names[:1])) == problem
    assert groups.refusal(lambda: groups.heartbeat("b", epoch, topics=names[:1])) == problem
    groups.heartbeat("b", epoch, topics=names[1:2])
