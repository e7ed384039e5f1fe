"""Items by their offsets, compared with a list that is searched from end to end."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from coordinator.share_partition.by_offset import LONGEST_CHUNK, ByOffset

SPACE = 40


@dataclass(eq=False)
class Item:
    first: int
    last: int


def items_of(dice: Random, count: int) -> list[Item]:
    """Returns items with and without gaps between them."""
    items, offset = list[Item](), 0
    for _ in range(count):
        first = offset + dice.choice((0, 0, 1, 3))
        items.append(Item(first, first + dice.randrange(4)))
        offset = items[-1].last + 1
    return items


@pytest.mark.parametrize("seed", range(20))
def test_look_ups_find_what_a_search_of_all_items_finds(seed: int) -> None:
    dice, table = Random(seed), ByOffset[Item]()
    items = items_of(dice, SPACE)
    for item in dice.sample(items, len(items)):
        table.add(item)
    gone = dice.sample(items, SPACE // 3)
    for item in gone:
        table.remove(item)
    left = [item for item in items if item not in gone]
    assert ([*table], len(table), table.head, table.tail) == (left, len(left), left[0], left[-1])
    for first in range(-1, items[-1].last + 2):
        assert table.floor(first) is next((item for item in reversed(left) if item.first <= first), None)
        for last in range(first, items[-1].last + 2):
            assert table.between(first, last) == [item for item in left if item.first <= last and item.last >= first]


def test_chunks_are_split_and_go_when_they_are_empty() -> None:
    table, items = ByOffset[Item](), [Item(2 * number, 2 * number) for number in range(3 * LONGEST_CHUNK)]
    table.add_all(items[::2])
    for item in items[1::2]:
        table.add(item)
    assert [*table] == items
    assert table.between(2 * LONGEST_CHUNK, 4 * LONGEST_CHUNK) == items[LONGEST_CHUNK : 2 * LONGEST_CHUNK + 1]
    for item in items[: 2 * LONGEST_CHUNK]:
        table.remove(item)
    assert (table.head, len(table), table.floor(0)) == (items[2 * LONGEST_CHUNK], LONGEST_CHUNK, None)
    table.clear()
    assert (bool(table), table.between(0, 10_000), table.floor(10_000)) == (False, [], None)
