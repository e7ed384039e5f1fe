"""Where a follower's log diverges from its leader's, and the offset to which the follower truncates it.

Pure functions of the two logs' ends. Source: getOffsetTruncationState and fetchOffsetAndTruncate of Kafka's
AbstractFetcherThread (KIP-101, KIP-279, KIP-595).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from protocol.errors import ErrorCode, KafkaError
from storage.epochs import UNDEFINED_EPOCH_OFFSET, EpochEnd


class ReplicaLog(Protocol):
    """The part of a leader's or follower's log that replication uses."""

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
        """The offset after the last record that is known to be committed."""
        ...

    @property
    def last_leader_epoch(self) -> int:
        """The newest leader epoch of the log; -1 if it has none."""
        ...

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Returns the largest epoch up to the given epoch, and the offset after its last record."""
        ...


class CutTo(NamedTuple):
    """Removes the records from this offset on."""

    offset: int


class RestartAt(NamedTuple):
    """Removes all records; the next record gets this offset."""

    offset: int


class Resume(NamedTuple):
    """Leaves the log as it is."""


Correction: TypeAlias = "CutTo | RestartAt | Resume"


def diverging_epoch(leader: ReplicaLog, last_fetched_epoch: int, offset: int) -> EpochEnd | None:
    """Returns the epoch and offset at which a follower's log, with this last epoch and end, diverges from its leader's;
    None if it is a prefix. Raises OFFSET_OUT_OF_RANGE if the leader no longer has the epoch or the offset."""
    end = leader.end_of_epoch(last_fetched_epoch)
    if end.epoch < 0 or end.end_offset < 0 or offset < leader.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None


def diverging_offset(log: ReplicaLog, diverging: EpochEnd) -> int:
    """Returns the offset to truncate to if the leader's largest epoch, up to the follower's last epoch, ends as
    `diverging` says. The leader may have to be asked again, if the follower doesn't have that epoch."""
    own = log.end_of_epoch(diverging.epoch)
    if own.end_offset == UNDEFINED_EPOCH_OFFSET:  # no epoch here is so old: only the leader's answer counts
        return min(diverging.end_offset, log.log_end_offset)
    if own.epoch != diverging.epoch:
        return min(own.end_offset, log.log_end_offset)
    return min(own.end_offset, diverging.end_offset, log.log_end_offset)


def out_of_range(log: ReplicaLog, leader_start: int | None, leader_end: int) -> Correction | None:
    """Returns the correction if the leader doesn't have the offset after this log's end; None if the leader's start is
    needed first.

    A leader that ends earlier was elected uncleanly: the records that it doesn't have are lost. A leader that starts
    later has deleted the next records.
    """
    own_end = log.log_end_offset
    if leader_end < own_end:
        return CutTo(leader_end)
    if leader_start is None:
        return None
    return RestartAt(leader_start) if leader_start > own_end else Resume()
