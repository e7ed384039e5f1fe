"""Tests that a forked dict reads like a changed copy, and leaves the dict below unchanged until it is merged."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, MutableMapping
from random import Random

import pytest

from coordinator.group import requests
from coordinator.group.classic.forked_dict import ForkedDict
from coordinator.group.state import Client
from tests.coordinator.group.classic.world import ClassicGroups
from tests.coordinator.group.world import GROUP
from tests.group_requests import join_group

KEYS = range(12)


def change(random: Random, table: MutableMapping[int, int]) -> None:
    key, value = random.choice(KEYS), random.randrange(100)
    if random.random() < 0.5:
        table[key] = value
    else:
        table.pop(key, None)


@pytest.mark.parametrize("seed", range(50))
def test_a_fork_reads_like_a_changed_copy_and_becomes_it(seed: int) -> None:
    below = dict.fromkeys(Random(seed).sample(KEYS, 6), 0)
    before, copy, fork = list(below.items()), dict(below), ForkedDict(below)
    random, same = Random(seed), Random(seed)
    for _ in range(40):
        change(random, copy)
        change(same, fork)
        assert list(fork.items()) == list(copy.items())
        assert len(fork) == len(copy)
        assert [key in fork for key in KEYS] == [key in copy for key in KEYS]
    assert list(below.items()) == before
    fork.merge_into(below)
    assert list(below.items()) == list(copy.items())


def test_values_may_be_replaced_while_the_keys_are_iterated() -> None:
    fork = ForkedDict({1: "below", 2: "below"})
    fork[3] = "added"
    for key in fork:
        fork[key] = "replaced"
    assert dict(fork) == dict.fromkeys((1, 2, 3), "replaced")


def test_a_key_that_is_gone_is_not_found() -> None:
    fork = ForkedDict({1: 1})
    del fork[1]
    with pytest.raises(KeyError):
        fork[1]
    with pytest.raises(KeyError):
        del fork[1]


def calls(work: Callable[[], object]) -> int:
    """Returns the number of function calls that the work makes."""
    count = 0

    def count_call(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # a collection may call back
    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def work_of_one_more_member(members: int) -> int:
    groups = ClassicGroups()
    for number in range(members):
        groups.join(client_id=f"client-{number}")
    request = join_group(GROUP, metadata=b"metadata")
    return calls(lambda: groups.ask(requests.join_group, request, Client(3, "one more")))


def test_a_member_joins_a_thousand_with_no_more_work_than_ten() -> None:
    assert work_of_one_more_member(1_000) == work_of_one_more_member(10)
