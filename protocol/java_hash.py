"""Java's String.hashCode, which selects the partition of a coordinator's topic and decides a HashMap's order."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

HASHES: Final = 1_024
"""Number of cached hash codes. Every heartbeat needs a hash code, and Python takes some microseconds to compute it if
it isn't compiled. A name takes 250 bytes here, also after its group is gone."""

SIGN_BIT: Final = 1 << 31
FEWEST_BUCKETS: Final = 16


@lru_cache(maxsize=HASHES)
def java_hash(text: str) -> int:
    """Returns the hash of the UTF-16 code units as a signed int32. As in Kafka's Utils.abs, -2^31 becomes 0, because it
    has no positive counterpart."""
    units = text.encode("utf-16-be", "surrogatepass")
    result: i64 = 0
    at: i64 = 0
    while at < len(units):
        result = (31 * result + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
        at += 2
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
