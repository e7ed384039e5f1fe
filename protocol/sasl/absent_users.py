"""SCRAM challenges for unknown users, which look like the challenges of existing users.

Apache Kafka rejects an unknown user at the first message. Odradek returns a constant salt, derived from the name and a
secret. The salt's shape and the number of iterations are those of an existing user, selected by the name, so that they
have the same distribution over unknown names as over existing users.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from protocol.sasl.scram import DIGESTS, MIN_ITERATIONS, Credential, base36

DIGITS_BITS: Final = 130
"""Random bits of a salt of Kafka's tools, which write them in base 36 (ScramFormatter.secureRandomString)."""

DIGITS_BYTES: Final = range(20, 27)
"""Lengths of base-36 salts. A shorter salt occurs once in a billion."""

DRAWN_BYTES: Final = 8
"""Bytes that select a shape, enough for any number of users."""


class ChallengeShape(NamedTuple):
    """The visible properties of a user's challenge, besides the bytes of its salt."""

    salt_bytes: int | None
    """The salt's length; None for a base-36 salt as Kafka's tools write it."""
    iterations: int


USUAL: Final[Mapping[ChallengeShape, int]] = {ChallengeShape(None, MIN_ITERATIONS): 1}
"""The shapes if no user exists."""


def shape_of(credential: Credential) -> ChallengeShape:
    """Returns the shape of a credential's challenge."""
    salt = credential.salt
    in_digits = len(salt) in DIGITS_BYTES and salt.isalnum() and salt.isascii() and salt == salt.lower()
    return ChallengeShape(None if in_digits else len(salt), credential.iterations)


def absent_user(secret: bytes, mechanism: str, name: str, shapes: Mapping[ChallengeShape, int]) -> Credential:
    """Returns a credential for an unknown user, which no password matches. `shapes` are the shapes of existing users,
    with the number of users of each."""
    drawn = hmac.digest(secret, f"{mechanism}/{name}".encode("utf-8", "surrogatepass"), "sha512")
    shape = _drawn_shape(int.from_bytes(drawn[:DRAWN_BYTES]), sorted((shapes or USUAL).items(), key=_sortable))
    size = hashlib.new(DIGESTS[mechanism]).digest_size
    keys = hashlib.shake_256(drawn + b"keys").digest(2 * size)
    return Credential(_salt(drawn, shape.salt_bytes), keys[:size], keys[size:], shape.iterations)


def _sortable(counted: tuple[ChallengeShape, int]) -> tuple[int, int]:
    shape, _ = counted
    return shape.iterations, shape.salt_bytes or 0


def _drawn_shape(number: int, counted: Iterable[tuple[ChallengeShape, int]]) -> ChallengeShape:
    """Returns the shape that the number selects, weighted by the number of users."""
    counts = list(counted)
    place = number * sum(count for _, count in counts) >> (8 * DRAWN_BYTES)
    for shape, count in counts:
        if place < count:
            return shape
        place -= count
    raise AssertionError("the number is below the sum of all counts")


def _salt(drawn: bytes, salt_bytes: int | None) -> bytes:
    if salt_bytes is not None:
        return hashlib.shake_256(drawn + b"salt").digest(salt_bytes)
    bits = int.from_bytes(hashlib.shake_256(drawn + b"salt").digest(DIGITS_BITS // 8 + 1))
    return base36(bits >> (8 - DIGITS_BITS % 8)).encode()
