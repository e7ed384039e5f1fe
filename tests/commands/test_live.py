"""Tests the live screen: rates between samples, the order of rows, and the division of a screen among tables."""

from __future__ import annotations

from commands.groups.facts import GroupFacts
from commands.groups.listing import CLASSIC, GroupDescription, GroupMember
from commands.state.live import ClusterSample, rows_for, screen, view
from protocol.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def group(name: str, committed: int, lag: int, *clients: str) -> GroupFacts:
    members = [GroupMember(f"{client}-1", None, client, "h", [A0, A1]) for client in clients]
    return GroupFacts(GroupDescription(name, CLASSIC, "Stable", "range", 1, members), {A0: committed}, {A0: lag})


def sample(now_ms: int, ends: dict[TopicPartition, int], *groups: GroupFacts) -> ClusterSample:
    return ClusterSample(now_ms, "id", 3, ends, dict.fromkeys(ends, 0), list(groups))


FIRST = sample(0, {A0: 10, A1: 0, B0: 0}, group("g", 5, 5, "x"), group("slow", 0, 10))
SECOND = sample(2000, {A0: 20, A1: 2, B0: 40}, group("g", 17, 3, "y", "x"), group("slow", 0, 20))


def test_rates_are_by_second_and_the_busiest_comes_first() -> None:
    shown = view(FIRST, SECOND)
    assert [(row["topic"], row["records"], row["records_per_s"]) for row in shown.topics] == [
        ("b", 40, 20.0), ("a", 22, 6.0),
    ]  # fmt: skip
    assert [(row["group"], row["lag"], row["lag_per_s"], row["read_per_s"]) for row in shown.groups] == [
        ("slow", 20, 5.0, 0.0), ("g", 3, -1.0, 6.0),
    ]  # fmt: skip
    assert [(row["client"], row["partitions"]) for row in shown.clients] == [("x", 2), ("y", 2)]


def test_a_first_sample_has_no_rates() -> None:
    shown = view(None, FIRST)
    assert {row["records_per_s"] for row in shown.topics} == {row["lag_per_s"] for row in shown.groups} == {None}


def test_what_is_new_since_the_first_sample_has_no_rate_of_its_own() -> None:
    shown = view(sample(0, {A0: 10}), SECOND)
    assert {row["topic"]: row["records_per_s"] for row in shown.topics} == {"a": 5.0, "b": 0.0}
    assert shown.groups[0]["lag_per_s"] is None


def test_a_screen_is_no_larger_than_the_terminal() -> None:
    shown = view(FIRST, SECOND)
    assert screen(shown, 200, 40) == [
        "id  1970-01-01T00:00:02.000Z  3 brokers, 2 topics, 3 partitions, 2 groups",
        "",
        "TOPIC  PARTITIONS  RECORDS  RECORDS/S",
        "b               1       40       20.0",
        "a               2       22        6.0",
        "",
        "GROUP  TYPE     STATE   MEMBERS  LAG  LAG/S  READ/S",
        "slow   classic  Stable        0   20    5.0     0.0",
        "g      classic  Stable        2    3   -1.0     6.0",
        "",
        "CLIENT  HOST  GROUP  PARTITIONS",
        "x       h     g               2",
        "y       h     g               2",
    ]
    small = screen(shown, 10, 5)
    assert len(small) == 5
    assert max(map(len, small)) == 10
    assert small[0].endswith("…")


def test_a_table_that_is_cut_says_how_much_of_it_is_shown() -> None:
    many = sample(0, {TopicPartition(f"t{number:02}", 0): 1 for number in range(50)})
    lines = screen(view(None, many), 80, 20)
    assert lines[2].startswith("TOPIC (13 of 50)")
    assert len(lines) == 20


def test_room_that_one_table_does_not_need_is_the_others() -> None:
    assert rows_for([2, 100, 3], 30) == [2, 25, 3]
    assert rows_for([100, 100, 100], 30) == [10, 10, 10]
    assert rows_for([1, 1, 1], 30) == [1, 1, 1]
    assert rows_for([9, 9, 9], 0) == [2, 2, 2]


def test_what_a_broker_did_not_answer_is_unknown_and_named() -> None:
    unknown = GroupFacts(FIRST.groups[0].group, {A0: 5}, {A0: 5}, {A1: "no answer"})
    now = SECOND._replace(
        ends={A0: 20, B0: 40}, groups=[unknown], unread={A1: "no answer"}, unlisted={3: "refused"}, failed={"f": "away"}
    )
    shown = view(FIRST, now)
    topics = {row["topic"]: row for row in shown.topics}
    assert (topics["a"]["partitions"], topics["a"]["records"], topics["a"]["records_per_s"]) == (2, None, None)
    assert topics["a"]["error"] == "a-1: no answer"
    assert "error" not in topics["b"]
    groups = {row["group"]: row for row in shown.groups}
    assert (groups["g"]["lag"], groups["g"]["lag_per_s"], groups["g"]["error"]) == (None, None, "a-1: no answer")
    assert (groups["f"]["error"], groups[None]["error"]) == ("away", "refused")
    assert any("no answer" in line for line in screen(shown, 200, 40))
