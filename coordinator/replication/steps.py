"""The steps of a follower after a leader's answer."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeAlias

from coordinator.replication.states import FollowedPartition, L
from coordinator.replication.truncation import CutTo, RestartAt
from protocol.errors import ErrorCode


class Replicate(NamedTuple, Generic[L]):
    """Append these batches, perhaps none, unchanged; then apply the leader's watermarks."""

    partition: FollowedPartition[L]
    records: memoryview
    high_watermark: int
    log_start_offset: int


class Correct(NamedTuple, Generic[L]):
    """Truncate the log, which isn't a prefix of the leader's, in a thread; then call `Fetcher.corrected`."""

    partition: FollowedPartition[L]
    correction: CutTo | RestartAt


class LeaderError(NamedTuple, Generic[L]):
    """Report the leader's error to the operator; the partition's state has changed already."""

    partition: FollowedPartition[L]
    code: ErrorCode


FollowerStep: TypeAlias = "Replicate[L] | Correct[L] | LeaderError[L]"
