"""The challenge of a SCRAM user that does not exist, which looks as that of one that does.

Apache Kafka fails such a user at its first message. Here it gets a salt that stays the same, made of its name and a
secret. The salt's shape and the number of iterations are those of a user that exists, drawn by the name, so that they
are spread over names that do not exist as over those that do.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from protocol.sasl.scram import DIGESTS, MIN_ITERATIONS, Credential, base36

DIGITS_BITS: Final = 130
"""The random bits that Kafka's tools spell by the digits of base 36 for a salt (ScramFormatter.secureRandomString)."""

DIGITS_BYTES: Final = range(20, 27)
"""The lengths of their spelling: shorter ones come once in a billion."""

DRAWN_BYTES: Final = 8
"""Bytes that draw a shape: as many shapes as there may be users are weighed by them."""


class ChallengeShape(NamedTuple):
    """The things that a user's challenge shows beside the bytes of its salt."""

    salt_bytes: int | None
    """The salt's length; None for one that is spelled in digits as Kafka's tools do it."""
    iterations: int


USUAL: Final[Mapping[ChallengeShape, int]] = {ChallengeShape(None, MIN_ITERATIONS): 1}
"""The shapes where no user exists."""


def shape_of(credential: Credential) -> ChallengeShape:
    """Returns the shape of the challenge that these keys have."""
    salt = credential.salt
    in_digits = len(salt) in DIGITS_BYTES and salt.isalnum() and salt.isascii() and salt == salt.lower()
    return ChallengeShape(None if in_digits else len(salt), credential.iterations)


def absent_user(secret: bytes, mechanism: str, name: str, shapes: Mapping[ChallengeShape, int]) -> Credential:
    """Returns the keys of a user that does not exist, which no password has. `shapes` are those of users that do exist,
    and how many have each."""
    drawn = hmac.digest(secret, f"{mechanism}/{name}".encode("utf-8", "surrogatepass"), "sha512")
    shape = _drawn_shape(int.from_bytes(drawn[:DRAWN_BYTES]), sorted((shapes or USUAL).items(), key=_sortable))
    size = hashlib.new(DIGESTS[mechanism]).digest_size
    keys = hashlib.shake_256(drawn + b"keys").digest(2 * size)
    return Credential(_salt(drawn, shape.salt_bytes), keys[:size], keys[size:], shape.iterations)


def _sortable(counted: tuple[ChallengeShape, int]) -> tuple[int, int]:
    shape, _ = counted
    return shape.iterations, shape.salt_bytes or 0


def _drawn_shape(number: int, counted: Iterable[tuple[ChallengeShape, int]]) -> ChallengeShape:
    """Returns the shape in whose share of all users the number falls."""
    counts = list(counted)
    place = number * sum(count for _, count in counts) >> (8 * DRAWN_BYTES)
    for shape, count in counts:
        if place < count:
            return shape
        place -= count
    raise AssertionError("a number is below the range that it is of")


def _salt(drawn: bytes, salt_bytes: int | None) -> bytes:
    if salt_bytes is not None:
        return hashlib.shake_256(drawn + b"salt").digest(salt_bytes)
    bits = int.from_bytes(hashlib.shake_256(drawn + b"salt").digest(DIGITS_BITS // 8 + 1))
    return base36(bits >> (8 - DIGITS_BITS % 8)).encode()
