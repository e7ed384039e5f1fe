"""Where a follower cuts its log so that it is a prefix of its leader's.

Pure functions of the two logs' ends. Source: getOffsetTruncationState and fetchOffsetAndTruncate of Kafka's
AbstractFetcherThread (KIP-101, KIP-279, KIP-595).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from storage.epochs import UNDEFINED_EPOCH_OFFSET, EpochEnd


class FollowerLog(Protocol):
    """A follower's log, as far as replication asks it."""

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        ...

    @property
    def high_watermark(self) -> int:
        """The offset behind the last record that is known to be committed."""
        ...

    @property
    def last_leader_epoch(self) -> int:
        """The newest leader epoch of the log; -1 when it has none."""
        ...

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Returns the largest epoch up to the given one, and the offset behind its last record."""
        ...


class CutTo(NamedTuple):
    """The records from this offset on go."""

    offset: int


class RestartAt(NamedTuple):
    """All records go, and the next one gets this offset."""

    offset: int


class Resume(NamedTuple):
    """The log stays as it is."""


Correction: TypeAlias = "CutTo | RestartAt | Resume"


def diverging_offset(log: FollowerLog, diverging: EpochEnd) -> int:
    """Returns the offset to cut to when the leader answers that its largest epoch, up to the follower's last one, is
    this and ends there. It may have to be asked once more, where the follower does not know that epoch."""
    own = log.end_of_epoch(diverging.epoch)
    if own.end_offset == UNDEFINED_EPOCH_OFFSET:  # no epoch here is so old: the leader's word alone counts
        return min(diverging.end_offset, log.log_end_offset)
    if own.epoch != diverging.epoch:
        return min(own.end_offset, log.log_end_offset)
    return min(own.end_offset, diverging.end_offset, log.log_end_offset)


def out_of_range(log: FollowerLog, leader_start: int | None, leader_end: int) -> Correction | None:
    """Returns what to do once the leader does not have the offset behind this log's end; None while the leader's start
    has to be known for that.

    A leader that ends earlier was elected uncleanly: what it does not have is lost. One that begins later has deleted
    what would come next.
    """
    own_end = log.log_end_offset
    if leader_end < own_end:
        return CutTo(leader_end)
    if leader_start is None:
        return None
    return RestartAt(leader_start) if leader_start > own_end else Resume()
