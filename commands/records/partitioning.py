"""The choice of a record's partition, as in Java's clients (org.apache.kafka.clients.producer.internals
.BuiltInPartitioner): by the murmur2 hash of the key. Records without a key go to one partition for a batch, then to the
next partition."""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Returns the hash of org.apache.kafka.common.utils.Utils.murmur2, as an unsigned 32-bit number."""
    code = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & MASK
        word = (word ^ word >> 24) * MULTIPLIER & MASK
        code = code * MULTIPLIER & MASK ^ word
    if rest := data[whole:]:
        code = (code ^ int.from_bytes(rest, "little")) * MULTIPLIER & MASK
    code = (code ^ code >> 13) * MULTIPLIER & MASK
    return code ^ code >> 15


def partition_of_key(key: bytes, count: int) -> int:
    """Returns the partition of a key in a topic with `count` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % count
