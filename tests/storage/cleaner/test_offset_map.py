"""Tests the offset map of compaction."""

from __future__ import annotations

import random

from storage.cleaner.offset_map import BUCKET_ENTRIES, ENTRY_BYTES, OffsetMap


def test_the_latest_offset_of_a_key_is_found() -> None:
    offsets = OffsetMap(10_000)
    offsets.put(b"a", 1)
    offsets.put(b"b", 2)
    offsets.put(b"a", 3)
    assert (offsets.get(b"a"), offsets.get(b"b"), offsets.get(b"c")) == (3, 2, -1)
    assert (offsets.size, offsets.latest_offset) == (2, 3)


def test_it_takes_as_many_keys_as_it_has_slots_and_finds_them_all() -> None:
    offsets = OffsetMap(7 * BUCKET_ENTRIES * ENTRY_BYTES)
    keys = [str(n).encode() for n in range(offsets.slots)]
    random.Random(1).shuffle(keys)
    for n, key in enumerate(keys):
        offsets.put(key, n)
    assert [offsets.get(key) for key in keys] == list(range(offsets.slots))
    assert offsets.get(b"none of them") == -1
    assert offsets.size == offsets.slots == 7 * BUCKET_ENTRIES


def test_there_is_always_room_for_one_bucket() -> None:
    assert OffsetMap(1).slots == BUCKET_ENTRIES
