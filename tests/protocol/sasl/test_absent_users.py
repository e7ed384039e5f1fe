"""Tests that absent users get the same challenges as existing users, so that salt and iterations don't reveal which
users exist."""

from __future__ import annotations

from collections import Counter

import pytest

from protocol.sasl.absent_users import ChallengeShape, absent_user, shape_of
from protocol.sasl.scram import DIGESTS, Credential, base36

KAFKAS = ChallengeShape(None, 4096)
OURS = ChallengeShape(16, 8192)
NAMES = [f"user-{number}" for number in range(400)]


def user(name: str, *, secret: bytes = b"secret", mechanism: str = "SCRAM-SHA-256", **shapes: int) -> Credential:
    counted = {KAFKAS: shapes.get("kafkas", 0), OURS: shapes.get("ours", 0)}
    return absent_user(secret, mechanism, name, {shape: count for shape, count in counted.items() if count})


def test_a_name_has_the_same_salt_each_time_and_another_name_another() -> None:
    assert user("nobody", kafkas=1) == user("nobody", kafkas=1)
    assert len({user(name, kafkas=1).salt for name in NAMES}) == len(NAMES)


def test_a_salt_is_of_the_secret_and_of_the_mechanism() -> None:
    salts = {user("nobody", secret=secret, mechanism=one).salt for secret in (b"a", b"b") for one in DIGESTS}
    assert len(salts) == 4


def test_forms_are_spread_as_among_the_users_that_exist() -> None:
    spread = Counter(shape_of(user(name, kafkas=3, ours=1)) for name in NAMES)
    assert spread[KAFKAS] + spread[OURS] == len(NAMES)
    assert 240 < spread[KAFKAS] < 360


def test_one_more_user_changes_few_challenges() -> None:
    changed = sum(user(name, kafkas=99) != user(name, kafkas=99, ours=1) for name in NAMES)
    assert changed < 20


def test_without_users_they_are_as_kafkas_tools_make_them() -> None:
    assert {shape_of(user(name)) for name in NAMES} == {KAFKAS}


@pytest.mark.parametrize(("salt", "salt_bytes"), [
    (base36((1 << 130) - 1).encode(), None),
    (bytes(range(16)), 16),
    (b"salt", 4),
    (b"A" * 26, 26),
])  # fmt: skip
def test_a_salt_in_digits_is_told_from_others(salt: bytes, salt_bytes: int | None) -> None:
    assert shape_of(Credential(salt, b"", b"", 4096)) == ChallengeShape(salt_bytes, 4096)


def test_a_salt_in_digits_has_as_many_bits_as_kafkas() -> None:
    numbers = [int(user(name, kafkas=1).salt, 36) for name in NAMES]
    assert max(numbers) < 1 << 130
    assert max(numbers) >= 1 << 129
