"""A fetch from a share partition: its limits, the batches read for it, and the records that it acquires."""

from __future__ import annotations

from typing import Final, NamedTuple

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1


class AcquireRequest(NamedTuple):
    """The limits of a fetch's acquisition from one partition."""

    member_id: str
    max_records: int
    batch_size: int
    mode: int = BATCH_OPTIMIZED

    @property
    def is_exact(self) -> bool:
        return self.mode == RECORD_LIMIT


class FetchedBatch(NamedTuple):
    """A batch of the log: its offsets, and the position of its bytes."""

    first: int
    last: int
    position: int = 0
    end: int = 0


class Acquired(NamedTuple):
    """Records that the member has acquired, and the number of their delivery."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1
