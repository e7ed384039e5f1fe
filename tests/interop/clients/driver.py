"""The interface of a client to the client matrix, whichever language it is in. Everything is about partition 0 of a
topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("0", "1", "all")
CONSUME_TIMEOUT_S = 30


class Kind(NamedTuple):
    """How a batch of records is to be produced."""

    codec: str = "none"
    acks: str = "all"
    idempotent: bool = False


class Driver(Protocol):
    """One client library. A failure of the client is an exception here; fewer records than asked for are not."""

    def create(self, bootstrap: str, topic: str) -> None:
        """Make a topic with one partition, by the client's own means: its admin calls, or asking for metadata."""

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        """Write the values in their order, and return when they are acknowledged as `kind.acks` has it."""

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        """Read `count` values from an offset on, by assignment."""

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        """Read `count` values from the first record at or after a timestamp on."""

    def close(self) -> None:
        """Let go of processes."""
