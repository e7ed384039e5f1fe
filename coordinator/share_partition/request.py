"""A fetch from a share partition: its limits, the batches that were read for it, and the records that it acquires."""

from __future__ import annotations

from typing import Final, NamedTuple

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1


class AcquireRequest(NamedTuple):
    """The limits of what a fetch acquires of one partition."""

    member_id: str
    max_records: int
    batch_size: int
    mode: int = BATCH_OPTIMIZED

    @property
    def is_exact(self) -> bool:
        return self.mode == RECORD_LIMIT


class FetchedBatch(NamedTuple):
    """A batch of the log as it was read: its offsets, and where its bytes are."""

    first: int
    last: int
    position: int = 0
    end: int = 0


class Acquired(NamedTuple):
    """Records that are the member's now, and for the how many-eth time they are delivered."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1
