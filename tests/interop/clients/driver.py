"""The interface of a client to the client matrix, in any language. All methods use partition 0 of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("0", "1", "all")
CONSUME_TIMEOUT_S = 30


class Kind(NamedTuple):
    """The way in which a batch of records is produced."""

    codec: str = "none"
    acks: str = "all"
    idempotent: bool = False


class Driver(Protocol):
    """The driver of a client library. A failure of the client raises an exception; too few records don't."""

    def create(self, bootstrap: str, topic: str) -> None:
        """Creates a topic with one partition, in the client's own way: by admin requests, or by requesting metadata."""

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        """Writes the values in order, and returns when they are acknowledged according to `kind.acks`."""

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        """Reads `count` values from an offset on, by assignment."""

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        """Reads `count` values from the first record at or after a timestamp on."""

    def close(self) -> None:
        """Ends the driver's processes."""
