"""Tests subscriptions by pattern: matched off the event loop, refreshed, counted, and rejected if they are invalid."""

from __future__ import annotations

import pytest

from coordinator.group.consumer import records
from coordinator.group.consumer.patterns import MATCHING_TIMEOUT_MS, MIN_REFRESH_INTERVAL_MS
from coordinator.group.regex import Resolved, match_all
from protocol.errors import ErrorCode
from tests.coordinator.driver import START_MS
from tests.coordinator.group.world import GROUP, SOON_MS, Groups, assigned


@pytest.fixture
def groups() -> Groups:
    return Groups()


def join(groups: Groups, member_id: str, pattern: str) -> object:
    return groups.join(member_id, subscribed_topic_regex=pattern)


def test_a_pattern_gets_its_topics_once_it_is_matched(groups: Groups) -> None:
    foo = groups.create_topic("foo", 1)
    groups.create_topic("bar", 1)
    join(groups, "a", "fo+")
    assert groups.group.subscriptions.patterns == {"fo+": 1}
    assert [(one.group_id, one.member_id, one.patterns) for one in groups.match_requests] == [(GROUP, "a", ("fo+",))]
    assert groups.group.epoch == 1  # there is nothing to assign yet

    resolved = Resolved(frozenset({"foo"}), groups.topics.version, START_MS)
    assert groups.match_patterns() == [
        records.regex(GROUP, "fo+", resolved),
        records.COMMON.epoch(GROUP, 2, groups.watch.group_hash(["foo"])),
    ]
    response = groups.heartbeat("a", 1)
    assert (response.member_epoch, assigned(response)) == (2, {foo: [0]})


def test_a_pattern_that_others_have_is_known_at_once(groups: Groups) -> None:
    groups.create_topic("foo", 2)
    join(groups, "a", "fo+")
    groups.match_patterns()
    groups.heartbeat("a", 1)
    groups.advance(SOON_MS)
    join(groups, "b", "fo+")
    assert groups.match_requests == []
    assert groups.group.epoch == 3
    assert groups.group.subscriptions.are_alike(2)


def test_a_new_topic_is_found_by_the_next_heartbeat_after_a_while(groups: Groups) -> None:
    foo = groups.create_topic("foo", 1)
    join(groups, "a", "fo+")
    groups.match_patterns()
    groups.heartbeat("a", 1)
    fooo = groups.create_topic("fooo", 1)
    groups.advance(MIN_REFRESH_INTERVAL_MS)
    groups.heartbeat("a", 2)
    assert groups.match_requests == []
    groups.advance(1)
    groups.heartbeat("a", 2)
    groups.match_patterns()
    assert assigned(groups.heartbeat("a", 2)) == {foo: [0], fooo: [0]}


def test_without_new_topics_patterns_are_matched_again_much_later(groups: Groups) -> None:
    groups.settings = groups.settings._replace(group_consumer_regex_refresh_interval_ms=20_000)
    groups.create_topic("foo", 1)
    join(groups, "a", "fo+")
    groups.match_patterns()
    groups.heartbeat("a", 1)
    groups.advance(20_000)
    groups.heartbeat("a", 2)
    assert groups.match_requests == []
    groups.advance(1)
    groups.heartbeat("a", 2)
    written = groups.match_patterns()
    assert written == [records.regex(GROUP, "fo+", Resolved(frozenset({"foo"}), groups.topics.version, groups.now_ms))]


def test_one_match_at_a_time_and_another_if_it_is_lost(groups: Groups) -> None:
    groups.create_topic("foo", 1)
    join(groups, "a", "fo+")
    groups.heartbeat("a", 1)
    assert len(groups.match_requests) == 1
    groups.advance(20_000)
    groups.heartbeat("a", 1)
    groups.advance(20_000)
    groups.heartbeat("a", 1)
    groups.advance(MATCHING_TIMEOUT_MS - 40_000)
    groups.heartbeat("a", 1)
    assert len(groups.match_requests) == 2


def test_the_last_to_have_a_pattern_takes_it_along(groups: Groups) -> None:
    foo, bar = groups.create_topic("foo", 1), groups.create_topic("bar", 1)
    join(groups, "a", "fo+")
    groups.match_patterns()
    groups.heartbeat("a", 1)
    response = groups.heartbeat("a", 2, owned={foo: [0]}, topics=["bar"], subscribed_topic_regex="")
    assert assigned(response) == {}
    assert groups.written[1:3] == [
        records.regex_gone(GROUP, "fo+"),
        records.COMMON.epoch(GROUP, 3, groups.watch.group_hash(["bar"])),
    ]
    assert groups.group.resolved == {}
    groups.advance(SOON_MS)
    assert assigned(groups.heartbeat("a", 2, owned={})) == {bar: [0]}


def test_a_member_that_goes_takes_its_pattern_along(groups: Groups) -> None:
    groups.create_topic("foo", 1)
    join(groups, "a", "fo+")
    groups.match_patterns()
    groups.heartbeat("a", -1)
    assert groups.written == [
        *records.COMMON.all_of_member_gone(GROUP, "a"),
        records.regex_gone(GROUP, "fo+"),
        records.COMMON.epoch(GROUP, 3, 0),
        records.COMMON.target_epoch(GROUP, 3, 0),
    ]


def test_names_and_a_pattern_add_up(groups: Groups) -> None:
    foo, bar = groups.create_topic("foo", 1), groups.create_topic("bar", 1)
    groups.join("a", ["bar"], subscribed_topic_regex="fo+")
    groups.match_patterns()
    groups.advance(SOON_MS)
    assert assigned(groups.heartbeat("a", 2)) == {bar: [0], foo: [0]}
    assert not groups.group.subscriptions.are_alike(1)


def test_a_result_that_nobody_waits_for_changes_nothing(groups: Groups) -> None:
    groups.create_topic("foo", 1)
    join(groups, "a", "fo+")
    groups.heartbeat("a", -1)
    assert groups.match_patterns() == []


def test_a_new_pattern_that_matches_nothing_leaves_its_partitions_to_others(groups: Groups) -> None:
    foo = groups.create_topic("foo", 2)
    join(groups, "a", "fo+")
    groups.match_patterns()
    groups.heartbeat("a", 1)
    groups.advance(MIN_REFRESH_INTERVAL_MS)
    groups.join("b", ["foo"])
    groups.heartbeat("a", 2, owned={foo: [0]})
    groups.heartbeat("a", 3, owned={foo: [0]}, subscribed_topic_regex="none")
    groups.heartbeat("a", 3, owned={})
    groups.match_patterns()
    groups.advance(SOON_MS)
    assert assigned(groups.heartbeat("b", 3)) == {foo: [0, 1]}


def test_what_is_no_pattern_is_refused(groups: Groups) -> None:
    code, message = groups.refusal(lambda: join(groups, "a", "(fo+"))
    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert message.startswith("SubscribedTopicRegex `(fo+` is not a valid regular expression: ")
    assert GROUP not in groups.shard.state.groups


def test_a_pattern_that_costs_too_much_is_refused(groups: Groups) -> None:
    for pattern in ("x{1000}" * 101, "\\pL" * 101, "(x{1,100}){1,100}" * 10, "(\\pL{1,30}){1,3}", "x{1000}" * 90):
        assert groups.refusal(lambda pattern=pattern: join(groups, "a", pattern))[0] is (  # type: ignore[misc]
            ErrorCode.INVALID_REGULAR_EXPRESSION
        )


def test_many_groups_in_a_pattern_cost_nothing() -> None:
    assert match_all(["(a|b|c|d|e)*" * 2000], ["a" * 249] * 50) == {"(a|b|c|d|e)*" * 2000: {"a" * 249}}


def test_patterns_match_whole_names_in_linear_time() -> None:
    names = ["a", "ab", "b", "a" * 249]
    assert match_all(["a", "a.*", "b|a", "(", "(a+)+$c"], names) == {
        "a": {"a"},
        "a.*": {"a", "ab", "a" * 249},
        "b|a": {"a", "b"},
        "(": set(),
        "(a+)+$c": set(),
    }
