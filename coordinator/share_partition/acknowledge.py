"""Applies a member's acknowledgements of its records: of whole batches, parts of them, or single records.

All of a request's acknowledgements of a partition are applied, or none is. Source: SharePartition.acknowledge (KIP-932,
KIP-1222).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from coordinator.share_partition.cache import InFlightBatch
from coordinator.share_partition.run import Change, Run, given_up, settled
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, ARCHIVING, MEANS, RENEW, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError


class Acknowledgement(NamedTuple):
    """Records first to last, with one type for all of them, or a type for each."""

    first: int
    last: int
    types: Sequence[int]


def acknowledge(
    partition: SharePartition, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int
) -> Change | None:
    """Returns the change to write for these acknowledgements; None if there is nothing to write.

    Raises INVALID_REQUEST and INVALID_RECORD_STATE, with nothing changed.
    """
    change = Change()
    try:
        for acknowledgement in acknowledgements:
            if acknowledgement.last < partition.start_offset:
                continue
            _acknowledge(partition, member_id, acknowledgement, change, now_ms)
    except KafkaError:
        partition.complete(change, False, now_ms)
        raise
    return partition.seal(change) if change.batches else None


def _acknowledge(
    partition: SharePartition, member_id: str, acknowledgement: Acknowledgement, change: Change, now_ms: int
) -> None:
    for batch in _batches(partition, acknowledgement):
        if batch.last < partition.start_offset:
            continue
        for run, kind in _runs(partition, batch, acknowledgement, member_id):
            if kind == RENEW:
                _renew(partition, run, now_ms)
                continue
            state = MEANS.get(kind)
            if state is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown acknowledge type id: {kind}")
            if kind == AcknowledgeType.REJECT:
                state = given_up(partition.limits)
                if state is ARCHIVING and run.delivery_count >= partition.limits.max_delivery_count:
                    partition.rejected.update(range(run.first, run.last + 1))
            run.begin(settled(state, run.delivery_count, partition.limits), change)


def _batches(partition: SharePartition, acknowledgement: Acknowledgement) -> Sequence[InFlightBatch]:
    """Returns the batches that have the offsets, which must be in flight."""
    cache = partition.cache
    floor = cache.floor(acknowledgement.first)
    if floor is None and acknowledgement.first < partition.start_offset <= acknowledgement.last:
        floor = cache.floor(partition.start_offset)
    if floor is None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD_STATE,
            "Batch record not found. The request batch offsets are not found in the cache.",
        )
    batches = cache.overlapping(floor.first, max(floor.first, acknowledgement.last))
    for which, offset in (("first", acknowledgement.first), ("last", acknowledgement.last)):
        if offset > batches[-1].last:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
    return batches


def _runs(
    partition: SharePartition, batch: InFlightBatch, acknowledgement: Acknowledgement, member_id: str
) -> Iterator[tuple[Run, int]]:
    """Yields the runs of a batch with the acknowledgement type of each; all are checked to be the member's."""
    if not batch.is_tracked:
        _check(batch.runs.head, member_id)
        starts_inside = batch.first < partition.start_offset <= batch.last
        if (
            len(acknowledgement.types) == 1
            and not starts_inside
            and batch.is_within(acknowledgement.first, acknowledgement.last)
        ):
            yield batch.runs.head, acknowledgement.types[0]
            return
    first = max(batch.first, acknowledgement.first, partition.start_offset)
    last = min(batch.last, acknowledgement.last)
    for run in batch.part(first, last):
        _check(run, member_id)
    yield from batch.cut_by(_spans(acknowledgement, first, last))


def _spans(acknowledgement: Acknowledgement, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yields the offsets from `first` to `last` as ranges of one type."""
    if len(acknowledgement.types) == 1:
        if first <= last:
            yield first, last, acknowledgement.types[0]
        return
    types, start = acknowledgement.types, first
    for offset in range(first, last + 1):
        if offset == last or types[offset + 1 - acknowledgement.first] != types[start - acknowledgement.first]:
            yield start, offset, types[start - acknowledgement.first]
            start = offset + 1


def _check(run: Run, member_id: str) -> None:
    """Raises INVALID_RECORD_STATE unless the member has the run, and has not just acknowledged it."""
    if run.change is not None:
        message = "The record state is invalid. The acknowledgement of delivery could not be completed."
    elif run.state is not ACQUIRED:
        message = "The batch cannot be acknowledged. The batch is not in the acquired state."
    elif run.member_id != member_id:
        message = "Member is not the owner of batch record"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_RECORD_STATE, message)


def _renew(partition: SharePartition, run: Run, now_ms: int) -> None:
    if not partition.limits.renew_enabled:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
    run.renew(now_ms + partition.limits.lock_duration_ms)
