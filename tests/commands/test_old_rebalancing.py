"""Tests that a group in ZooKeeper completes its rebalance, in any order of its members' steps."""

from __future__ import annotations

import random

import pytest

from commands.zookeeper.assignors import STRATEGIES, Owners
from commands.zookeeper.consumers import OldMember
from commands.zookeeper.rebalancing import GroupView, claimed, rebalance, released, unsettled
from protocol.types import TopicPartition

RANGE = STRATEGIES["range"]
TOPICS = {"t": range(12), "u": range(5)}
ROUNDS = 50


def group(*names: str) -> GroupView:
    return GroupView([OldMember(name, "static", {"t": 1, "u": 2}) for name in names], TOPICS, ["1"])


def test_a_member_gives_up_all_and_claims_its_part() -> None:
    view = group("a", "b")
    owners: Owners = dict.fromkeys((TopicPartition("t", index) for index in range(12)), "a-0")
    step = rebalance("a", owners, view, RANGE)
    assert step.release == owners
    assert sorted(one.partition for one in step.claim if one.topic == "t") == list(range(6))


def test_a_partition_that_another_owns_is_waited_for_with_all_claims_taken_back() -> None:
    view = group("a", "b")
    owners: Owners = {TopicPartition("t", 11): "a-0"}
    assert claimed(owners, rebalance("b", owners, view, RANGE)) is None
    free = released(owners, rebalance("a", owners, view, RANGE))
    after = claimed(free, rebalance("b", free, view, RANGE))
    assert after is not None
    assert after[TopicPartition("t", 11)] == "b-0"


def test_without_a_broker_a_member_stays_as_it_is() -> None:
    view = group("a")._replace(brokers=[])
    owners: Owners = {TopicPartition("t", 0): "a-0"}
    assert rebalance("a", owners, view, RANGE).changes_nothing


def test_one_that_is_gone_and_one_that_came_have_yet_to_rebalance() -> None:
    owners: Owners = dict.fromkeys((TopicPartition("t", index) for index in range(12)), "gone-0")
    assert unsettled(owners, group("a"), RANGE) == ["a", "gone"]
    assert unsettled(RANGE(group("a").members, TOPICS), group("a"), RANGE) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(20))
def test_members_that_come_and_go_end_with_each_partition_owned_by_the_one_it_falls_to(
    seed: int, strategy: str
) -> None:
    chance, names = random.Random(seed), ["a", "b", "c"]
    owners: Owners = {}
    for _ in range(10):
        if len(names) > 1 and chance.random() < 0.4:
            names.remove(chance.choice(names))
        elif chance.random() < 0.5:
            names.append(f"n{len(names)}-{chance.randrange(1000)}")
        owners = {one: thread for one, thread in owners.items() if thread.rpartition("-")[0] in names}
        owners = _settled(owners, group(*names), strategy, chance)
        assert owners == STRATEGIES[strategy](group(*names).members, TOPICS)


def _settled(owners: Owners, view: GroupView, strategy: str, chance: random.Random) -> Owners:
    """Returns the owners after the members have rebalanced in a random order."""
    for _ in range(ROUNDS):
        names = [one.consumer_id for one in view.members]
        for name in chance.sample(names, chance.randint(1, len(names))):
            step = rebalance(name, owners, view, STRATEGIES[strategy])
            owners = released(owners, step)
            owners = claimed(owners, step) or owners
        if not unsettled(owners, view, STRATEGIES[strategy]):
            return owners
    raise AssertionError(f"not settled: {owners}")
