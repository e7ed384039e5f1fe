"""The steps that an answer of the leader has a follower take."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeAlias

from coordinator.replication.states import FollowedPartition, L
from coordinator.replication.truncation import CutTo, RestartAt
from protocol.errors import ErrorCode


class Replicate(NamedTuple, Generic[L]):
    """Append these batches, none perhaps, as they are; then take the leader's watermarks over."""

    partition: FollowedPartition[L]
    records: memoryview
    high_watermark: int
    log_start_offset: int


class Correct(NamedTuple, Generic[L]):
    """Cut the log, which is not a prefix of the leader's, in a thread; then report that with `Fetcher.corrected`."""

    partition: FollowedPartition[L]
    correction: CutTo | RestartAt


class LeaderError(NamedTuple, Generic[L]):
    """The leader answers with an error: for the operator, as the partition is dealt with."""

    partition: FollowedPartition[L]
    code: ErrorCode


FollowerStep: TypeAlias = "Replicate[L] | Correct[L] | LeaderError[L]"
