"""Java's String.hashCode, which selects the partition of a coordinator's topic and decides a HashMap's order."""

from __future__ import annotations

import struct
from collections.abc import Collection
from functools import lru_cache
from typing import Final

HASHES: Final = 65_536
"""Number of cached hash codes. Every heartbeat needs a hash code, and Python takes some microseconds to compute it."""

SIGN_BIT: Final = 1 << 31
FEWEST_BUCKETS: Final = 16


@lru_cache(maxsize=HASHES)
def java_hash(text: str) -> int:
    """Returns the hash of the UTF-16 code units as a signed int32. As in Kafka's Utils.abs, -2^31 becomes 0, because it
    has no positive counterpart."""
    result = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    units: tuple[int, ...] = struct.unpack(f">{len(encoded) // 2}H", encoded)
    for unit in units:
        result = (31 * result + unit) & 0xFFFFFFFF
    if result >= SIGN_BIT:
        result -= 2 * SIGN_BIT
    return result if result != -SIGN_BIT else 0


def hash_map_order(names: Collection[str]) -> list[str]:
    """Returns distinct names in the iteration order of a java.util.HashMap with these keys: ordered by bucket, then by
    insertion. The number of buckets is a power of two, and the load factor at most three quarters."""
    buckets = FEWEST_BUCKETS
    while len(names) > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        code = java_hash(name) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(names, key=bucket)
