"""Which partition of an internal topic has a key."""

from __future__ import annotations

import pytest

from broker.coordinators.hosting import java_hash


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("g", 103),
        ("transfers", 1052657128),
        ("connect-1", -579212274),
        ("my-group", -1906497762),
        ("ünïcödé 😀", 1204003438),
        ("polygenelubricants", 0),
    ],
)
def test_keys_are_hashed_as_java_hashes_them(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed
