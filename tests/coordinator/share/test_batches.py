"""Tests the combination of state batches: the newer batch wins, counts don't decrease, equal neighbours are joined."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.share.batches import NO_START_OFFSET, StateBatch, combine

B = StateBatch


@pytest.mark.parametrize(
    ("so_far", "new", "start", "result"),
    [
        ([], [], 0, []),
        ([B(0, 9, 0, 1)], [], 0, [B(0, 9, 0, 1)]),
        ([], [B(0, 9, 0, 1)], NO_START_OFFSET, [B(0, 9, 0, 1)]),
        # Below the start offset nothing stays.
        ([B(0, 9, 2, 1)], [], 10, []),
        ([B(0, 9, 2, 1)], [], 5, [B(5, 9, 2, 1)]),
        # Neighbours.
        ([B(0, 4, 2, 1)], [B(5, 9, 2, 1)], 0, [B(0, 9, 2, 1)]),
        ([B(0, 4, 2, 1)], [B(5, 9, 2, 2)], 0, [B(0, 4, 2, 1), B(5, 9, 2, 2)]),
        ([B(0, 4, 2, 1)], [B(6, 9, 2, 1)], 0, [B(0, 4, 2, 1), B(6, 9, 2, 1)]),
        # The same place.
        ([B(0, 9, 0, 1)], [B(0, 9, 2, 1)], 0, [B(0, 9, 2, 1)]),
        ([B(0, 9, 0, 2)], [B(0, 9, 2, 1)], 0, [B(0, 9, 0, 2)]),
        # One within the other.
        ([B(0, 9, 0, 1)], [B(3, 5, 2, 1)], 0, [B(0, 2, 0, 1), B(3, 5, 2, 1), B(6, 9, 0, 1)]),
        ([B(3, 5, 2, 1)], [B(0, 9, 0, 2)], 0, [B(0, 9, 0, 2)]),
        ([B(0, 9, 0, 2)], [B(3, 5, 2, 1)], 0, [B(0, 9, 0, 2)]),
        # One end in common.
        ([B(0, 9, 0, 1)], [B(0, 4, 2, 1)], 0, [B(0, 4, 2, 1), B(5, 9, 0, 1)]),
        ([B(0, 9, 0, 1)], [B(5, 9, 2, 1)], 0, [B(0, 4, 0, 1), B(5, 9, 2, 1)]),
        # Half and half.
        ([B(0, 5, 0, 1)], [B(3, 9, 2, 1)], 0, [B(0, 2, 0, 1), B(3, 9, 2, 1)]),
        ([B(0, 5, 2, 2)], [B(3, 9, 2, 1)], 0, [B(0, 5, 2, 2), B(6, 9, 2, 1)]),
        # Over several.
        (
            [B(0, 2, 0, 1), B(3, 5, 2, 1), B(6, 9, 0, 1)],
            [B(0, 9, 0, 2)],
            0,
            [B(0, 9, 0, 2)],
        ),
    ],
)
def test_two_lists_become_one(
    so_far: list[StateBatch], new: list[StateBatch], start: int, result: list[StateBatch]
) -> None:
    assert combine(so_far, new, start) == result


def batches() -> st.SearchStrategy[list[StateBatch]]:
    one = st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 40),
        st.integers(0, 12),
        st.sampled_from([0, 2, 3, 4]),
        st.integers(1, 4),
    )
    return st.lists(one, max_size=8)


@given(batches(), batches(), st.integers(-1, 30))
@settings(max_examples=300, deadline=None)
def test_each_offset_has_the_furthest_of_what_was_said_of_it(
    so_far: list[StateBatch], new: list[StateBatch], start: int
) -> None:
    furthest: dict[int, tuple[int, int]] = {}
    for batch in (*so_far, *new):
        for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
            rank = batch.delivery_count, batch.delivery_state
            furthest[offset] = max(furthest.get(offset, rank), rank)
    combined = combine(combine([], so_far, NO_START_OFFSET), new, start)
    assert {
        offset: (batch.delivery_count, batch.delivery_state)
        for batch in combined
        for offset in range(batch.first_offset, batch.last_offset + 1)
    } == furthest
    for before, after in pairwise(combined):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]


def test_what_an_overlap_leaves_joins_the_batch_before_it() -> None:
    new = [StateBatch(9, 21, 2, 1), StateBatch(10, 22, 0, 1), StateBatch(22, 22, 2, 1)]
    assert combine([], new, 0) == [StateBatch(9, 22, 2, 1)]


@pytest.mark.parametrize("so_far", [[], [StateBatch(0, 9, 0, 1)]])
def test_a_batch_that_ends_before_it_begins_is_no_batch(so_far: list[StateBatch]) -> None:
    assert combine(so_far, [StateBatch(5, 2, 2, 2), StateBatch(5, -9, 0, 3)], -1) == so_far
