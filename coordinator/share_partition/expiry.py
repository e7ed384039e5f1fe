"""Leases end, and records vanish: locks run out, members go, the log's start moves, transactions turn out aborted.

Source: SharePartition's releaseAcquisitionLockOnTimeout, releaseAcquiredRecords and updateCacheAndOffsets (KIP-932).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from coordinator.share_partition.cache import InFlightBatch
from coordinator.share_partition.run import Change, Run, settled
from coordinator.share_partition.share_partition import NO_DEADLINE, SharePartition
from coordinator.share_partition.states import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELAYED,
    FREE,
    TERMINAL,
    RecordState,
)

Range = tuple[int, int]


def expire(partition: SharePartition, now_ms: int) -> Change | None:
    """Ends the leases whose time is up, and the pauses of what was let go.

    What is written of it may fail to be: the records are available either way.
    """
    change = Change()
    partition.next_lock_ms = NO_DEADLINE
    for batch in partition.cache:
        for run in tuple(batch.runs):
            if run.state is not ACQUIRED and run.state is not DELAYED:
                continue
            if run.lock_until_ms > now_ms:
                partition.next_lock_ms = min(partition.next_lock_ms, run.lock_until_ms)
                continue
            if run.state is DELAYED:
                run.become(AVAILABLE)
                partition.looks_back = True
                continue
            for piece in _at_start(partition, batch, run):
                _end_lease(partition, piece, change, now_ms)
        batch.tidy()
    return partition.seal(change) if change.batches else None


def _at_start(partition: SharePartition, batch: InFlightBatch, run: Run) -> Sequence[Run]:
    """The run; in two where the start offset has moved into it."""
    if run.first < partition.start_offset <= run.last:
        batch.is_tracked = True
        rest = run.split(partition.start_offset)
        batch.runs.insert(batch.runs.index(run) + 1, rest)
        return run, rest
    return (run,)


def _released(partition: SharePartition, run: Run) -> RecordState:
    """Returns the state of records after their release: below the start offset they are archived."""
    if run.last < partition.start_offset:
        return ARCHIVED
    return settled(AVAILABLE, run.delivery_count, partition.limits)


def _end_lease(partition: SharePartition, run: Run, change: Change, now_ms: int) -> None:
    run.become(_released(partition, run))
    change.note(run)
    partition.delay(run, now_ms)
    if run.state in FREE:
        partition.looks_back = True
    elif run.state in TERMINAL:
        partition.delivery_complete_count += partition.from_start(run)


def release(partition: SharePartition, member_id: str) -> Change | None:
    """A member is gone: what it has is available again once that is written; None if it has nothing."""
    change = Change()
    for batch in partition.cache:
        for run in tuple(batch.runs):
            if run.state is not ACQUIRED or run.member_id != member_id:
                continue
            for piece in _at_start(partition, batch, run):
                piece.begin(_released(partition, piece), change)
                if piece.state in TERMINAL:
                    partition.delivery_complete_count += partition.from_start(piece)
    return partition.seal(change) if change.batches else None


def move_log_start(partition: SharePartition, log_start_offset: int) -> None:
    """The log begins later than the share partition: what was available before that is archived; what is acquired
    may still be acknowledged, without effect."""
    if log_start_offset <= partition.start_offset:
        return
    if not partition.cache.batches:
        partition.start_offset = partition.end_offset = log_start_offset
        partition.delivery_complete_count = 0
        return
    gone = _terminal_before(partition, log_start_offset)
    if archive(partition, partition.start_offset, log_start_offset - 1, FREE, counts=False):
        partition.looks_back = True
    if partition.gap is not None and partition.gap.start < log_start_offset:
        partition.close_gap(log_start_offset)
    partition.start_offset = log_start_offset
    partition.delivery_complete_count -= gone
    partition.end_offset = max(partition.end_offset, log_start_offset)
    partition.advance()  # what is left may be done with, and nobody would come to say so


def _terminal_before(partition: SharePartition, offset: int) -> int:
    return sum(
        min(run.last, offset - 1) - max(run.first, partition.start_offset) + 1
        for batch in partition.cache.overlapping(partition.start_offset, offset - 1)
        for run in batch.part(partition.start_offset, offset - 1)
        if run.state in TERMINAL
    )


def archive(partition: SharePartition, first: int, last: int, states: Container[RecordState], *, counts: bool) -> bool:
    """Archives the records from first to last that are in one of the states, because the log has them no more. Returns
    whether there were any."""
    archived = False
    for batch in partition.cache.overlapping(first, last):
        if not batch.is_tracked and batch.runs[0].state not in states:
            continue
        runs = batch.runs if batch.is_within(first, last) else batch.cut(first, last)
        for run in runs:
            if run.state in states:
                run.archive()
                archived = True
                if counts:
                    partition.delivery_complete_count += partition.from_start(run)
    return archived


def buried(partition: SharePartition, ranges: Iterable[Range]) -> Change | None:
    """Dead letters are written: their records are archived, whether or not that can be stored. Where it cannot, they
    are written again after a restart."""
    change = Change()
    for first, last in ranges:
        partition.rejected.difference_update(range(first, last + 1))
        for batch in partition.cache.overlapping(first, last):
            for run in batch.cut(first, last):
                if run.state is ARCHIVING and run.change is None:
                    run.become(ARCHIVED)
                    change.note(run)
                    partition.delivery_complete_count += partition.from_start(run)
            batch.tidy()
    return partition.seal(change) if change.batches else None


def archive_aborted(partition: SharePartition, aborted: Iterable[Range]) -> None:
    """Batches of transactions that were aborted, acquired only to be passed over (read_committed)."""
    for first, last in aborted:
        archive(partition, first, last, {ACQUIRED}, counts=True)
