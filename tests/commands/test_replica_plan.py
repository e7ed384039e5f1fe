"""Tests how replicas are spread over brokers."""

from __future__ import annotations

from collections import Counter
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.state.replica_plan import spread

BROKERS = st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True)


def test_what_is_even_stays_where_it_is() -> None:
    current = {0: [1, 2], 1: [2, 3], 2: [3, 1]}
    assert spread(current, [1, 2, 3]) == current


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = {0: [1, 2], 1: [2, 1], 2: [1, 2]}
    after = spread(current, [1, 2, 3])
    moved = sum(len(set(after[one]) - set(current[one])) for one in current)
    assert Counter(broker for held in after.values() for broker in held) == {1: 2, 2: 2, 3: 2}
    assert moved == 2


def test_a_broker_that_goes_keeps_nothing() -> None:
    assert spread({0: [1, 2], 1: [2, 1]}, [1, 3]) == {0: [1, 3], 1: [3, 1]}


def test_replicas_are_added_behind_those_there_are_and_taken_from_the_end() -> None:
    assert spread({0: [1]}, [1, 2], replicas=2) == {0: [1, 2]}
    assert spread({0: [1, 2, 3]}, [1, 2, 3], replicas=1) == {0: [1]}


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match="2 replicas need as many brokers; there are 1"):
        spread({0: [1, 2]}, [1])


@given(st.data())
def test_every_plan_is_even_and_on_the_brokers_alone(data: st.DataObject) -> None:
    old, new = data.draw(BROKERS), data.draw(BROKERS)
    current = data.draw(
        st.dictionaries(
            st.integers(0, 20), st.lists(st.sampled_from(old), min_size=1, max_size=len(new), unique=True), min_size=1
        )
    )
    after = spread(current, new)
    assert after.keys() == current.keys()
    for partition, held in after.items():
        assert len(set(held)) == len(held) == len(current[partition])
        assert set(held) <= set(new)
    loads = Counter(dict.fromkeys(new, 0))
    loads.update(broker for held in after.values() for broker in held)
    assert max(loads.values()) - min(loads.values()) <= 1


def test_leaders_are_spread_too() -> None:
    after = spread({one: [1, 2, 3] for one in range(6)}, [1, 2, 3])
    assert Counter(held[0] for held in after.values()) == {1: 2, 2: 2, 3: 2}


def test_the_replica_to_move_is_a_follower_of_the_lowest_partition() -> None:
    current = {0: [1, 2], 1: [2, 1], 2: [2, 1], 3: [1, 2]}
    assert spread(current, [1, 2, 3]) == {0: [1, 3], 1: [2, 3], 2: [2, 1], 3: [1, 2]}


def test_twenty_thousand_partitions_take_as_long_as_they_are_many() -> None:
    current = {one: [1 + one % 3, 1 + (one + 1) % 3] for one in range(20_000)}
    began_s = process_time()
    after = spread(current, [1, 2, 3, 4])
    assert process_time() - began_s < 5, "a look at all partitions for each that moves takes half a minute"
    assert Counter(broker for held in after.values() for broker in held) == dict.fromkeys((1, 2, 3, 4), 10_000)
    assert sum(set(after[one]) != set(current[one]) for one in current) == 10_000
