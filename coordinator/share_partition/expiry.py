"""Releases and archives records: when members leave, dead letters are written, the log's start moves, or transactions
abort. `SharePartition.expire` releases records when locks expire.

Source: SharePartition's releaseAcquiredRecords and updateCacheAndOffsets (KIP-932).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial

from coordinator.engine.result import Reply, Result, Ticket, answered
from coordinator.share.batches import StateBatch
from coordinator.share_partition.run import StateRecord
from coordinator.share_partition.run_index import in_order
from coordinator.share_partition.share_partition import PIECE, SharePartition
from coordinator.share_partition.states import ACQUIRED, ARCHIVED, ARCHIVING, FREE, RecordState

Range = tuple[int, int]


def release(partition: SharePartition, member_id: str, ticket: Ticket[bool], now_ms: int) -> Result[StateRecord]:
    """Releases a member's records once the release is written. Replies True if the member has more records than one
    decision releases."""
    runs = in_order(partition.cache.index.by_member.get(member_id, set()))
    record = partition.released(runs[:PIECE])
    return answered(ticket, len(runs) > PIECE, (record,) if record else ())


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


def buried(
    partition: SharePartition, ranges: Iterable[Range], ticket: Ticket[None], now_ms: int
) -> Result[StateRecord]:
    """Archives records whose dead letters are written. If that state can't be stored, the dead letters are written
    again after a restart."""
    record: list[StateBatch] = []
    effects = []
    for first, last in ranges:
        effects.append(partial(partition.rejected.difference_update, range(first, last + 1)))
        for batch in partition.cache.overlapping(first, last):
            record += [
                StateBatch(max(run.first, first), min(run.last, last), ARCHIVED, run.delivery_count)
                for run in batch.part(first, last)
                if run.state is ARCHIVING and run.change is None
            ]
    effects.append(partial(partition.conclude, record, True, now_ms))
    return Result((record,) if record else (), (Reply(ticket, None),), effects)


def archive_aborted(partition: SharePartition, aborted: Iterable[Range]) -> None:
    """Archives acquired records of aborted transactions (read_committed)."""
    for first, last in aborted:
        archive(partition, first, last, {ACQUIRED})
