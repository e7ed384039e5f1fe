"""String.hashCode of Java, by which a key finds its partition of a coordinator's topic."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

HASHES: Final = 65_536
"""Hash codes that are kept: every heartbeat needs one, and Python takes some microseconds to make it."""

SIGN_BIT: Final = 1 << 31


@lru_cache(maxsize=HASHES)
def java_hash(text: str) -> int:
    """Over UTF-16 code units, in 32 bits with a sign; 0 for the one number that has no positive twin, as Kafka's
    Utils.abs has it."""
    result = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    units: tuple[int, ...] = struct.unpack(f">{len(encoded) // 2}H", encoded)
    for unit in units:
        result = (31 * result + unit) & 0xFFFFFFFF
    if result >= SIGN_BIT:
        result -= 2 * SIGN_BIT
    return result if result != -SIGN_BIT else 0
