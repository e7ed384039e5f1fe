"""String.hashCode of Java: by it a key finds its partition of a coordinator's topic, and a HashMap its order."""

from __future__ import annotations

import struct
from collections.abc import Collection
from functools import lru_cache
from typing import Final

HASHES: Final = 65_536
"""Hash codes that are cached: every heartbeat needs one, and Python takes some microseconds to compute it."""

SIGN_BIT: Final = 1 << 31
FEWEST_BUCKETS: Final = 16


@lru_cache(maxsize=HASHES)
def java_hash(text: str) -> int:
    """Returns the hash over UTF-16 code units, in 32 bits with a sign; 0 for the one number that has no positive twin,
    as Kafka's Utils.abs has it."""
    result = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    units: tuple[int, ...] = struct.unpack(f">{len(encoded) // 2}H", encoded)
    for unit in units:
        result = (31 * result + unit) & 0xFFFFFFFF
    if result >= SIGN_BIT:
        result -= 2 * SIGN_BIT
    return result if result != -SIGN_BIT else 0


def hash_map_order(names: Collection[str]) -> list[str]:
    """The names, each once, as a java.util.HashMap goes through them that has nothing else: by bucket, of which there
    are a power of two, with a load of three quarters at most; those of one bucket as they came."""
    buckets = FEWEST_BUCKETS
    while len(names) > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        code = java_hash(name) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(names, key=bucket)
