"""Releases and archives records: when locks expire, members leave, the log's start moves, or transactions abort.

Source: SharePartition's releaseAcquisitionLockOnTimeout, releaseAcquiredRecords and updateCacheAndOffsets (KIP-932).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from coordinator.share_partition.run import Change, Run, settled
from coordinator.share_partition.run_index import in_order
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DELAYED,
    FREE,
    RecordState,
)

Range = tuple[int, int]


def expire(partition: SharePartition, now_ms: int) -> Change | None:
    """Releases records whose lock has expired, and ends delays that are over. Returns the change to write, if any.

    If the write fails, the records are available all the same.
    """
    change = Change()
    due = partition.cache.index.timed.up_to(now_ms)
    runs = [piece for run in due for piece in _at_start(partition, run)]
    for run in runs:
        if run.state is DELAYED:
            run.become(AVAILABLE)
        else:
            _end_lease(partition, run, change, now_ms)
    partition.cache.join(runs)
    return partition.seal(change) if change.batches else None


def _at_start(partition: SharePartition, run: Run) -> Sequence[Run]:
    """Returns the run, cut in two if the start offset has moved into it."""
    if run.first < partition.start_offset <= run.last:
        batch, first, last = partition.cache.batch_of(run), run.first, run.last
        batch.cut(partition.start_offset, last)
        return batch.part(first, last)
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


def release(partition: SharePartition, member_id: str) -> Change | None:
    """Releases a member's records once the change is written; returns None if the member has none."""
    change = Change()
    for run in in_order(partition.cache.index.by_member.get(member_id, set())):
        for piece in _at_start(partition, run):
            piece.begin(_released(partition, piece), change)
    return partition.seal(change) if change.batches else None


def move_log_start(partition: SharePartition, log_start_offset: int) -> None:
    """Archives available records before the log's new start; acquired records may still be acknowledged, without
    effect."""
    if log_start_offset <= partition.start_offset:
        return
    if partition.cache:
        archive(partition, partition.start_offset, log_start_offset - 1, FREE)
        if partition.gap is not None and partition.gap.start < log_start_offset:
            partition.close_gap(log_start_offset)
        partition.end_offset = max(partition.end_offset, log_start_offset)
    else:
        partition.end_offset = log_start_offset
    partition.cache.move_start(log_start_offset)
    partition.advance()  # the remaining records may all be terminal, and nothing else would advance


def archive(partition: SharePartition, first: int, last: int, states: Container[RecordState]) -> bool:
    """Archives the records from first to last that are in one of the states, because the log no longer has them. True
    if there were any."""
    archived = False
    for batch in partition.cache.overlapping(first, last):
        if not batch.is_tracked and batch.runs.head.state not in states:
            continue
        runs = batch.runs if batch.is_within(first, last) else batch.cut(first, last)
        for run in runs:
            if run.state in states:
                run.archive()
                archived = True
    return archived


def buried(partition: SharePartition, ranges: Iterable[Range]) -> Change | None:
    """Archives records whose dead letters are written, even if that can't be stored: then their dead letters are
    written again after a restart."""
    change = Change()
    for first, last in ranges:
        partition.rejected.difference_update(range(first, last + 1))
        for batch in partition.cache.overlapping(first, last):
            runs = [run for run in batch.cut(first, last) if run.state is ARCHIVING and run.change is None]
            for run in runs:
                run.become(ARCHIVED)
                change.note(run)
            partition.cache.join(runs)
    return partition.seal(change) if change.batches else None


def archive_aborted(partition: SharePartition, aborted: Iterable[Range]) -> None:
    """Archives acquired records of aborted transactions (read_committed)."""
    for first, last in aborted:
        archive(partition, first, last, {ACQUIRED})
