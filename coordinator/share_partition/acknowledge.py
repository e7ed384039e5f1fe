"""Applies a member's acknowledgements of its records: of whole batches, parts of them, or single records.

All of a request's acknowledgements of a partition are applied, or none is. Source: SharePartition.acknowledge (KIP-932,
KIP-1222).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from coordinator.share_partition.cache import InFlightBatch, Span
from coordinator.share_partition.run import Change, Run, given_up, settled
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, ARCHIVING, MEANS, RENEW, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError


class Acknowledgement(NamedTuple):
    """Records first to last, with one type for all of them, or a type for each."""

    first: int
    last: int
    types: Sequence[int]


PIECE: Final = 1_000
"""Number of records that are acknowledged together if each has its own type: about five milliseconds of work."""


def acknowledge(
    partition: SharePartition, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int
) -> Change | None:
    """Returns the change to write for these acknowledgements; None if there is nothing to write.

    Raises INVALID_REQUEST and INVALID_RECORD_STATE, with nothing changed.
    """
    change = Change()
    for _ in begin(partition, member_id, acknowledgements, change, now_ms):
        pass
    return partition.seal(change) if change.batches else None


def begin(
    partition: SharePartition,
    member_id: str,
    acknowledgements: Iterable[Acknowledgement],
    change: Change,
    now_ms: int,
) -> Generator[None, None, None]:
    """Begins these acknowledgements piece by piece, and yields after each: until the last piece, other requests may
    change the records of later pieces, but not the records of begun pieces.

    Raises as `acknowledge`. Nothing is changed either if the generator is closed before its end.
    """
    try:
        for acknowledgement in acknowledgements:
            if acknowledgement.last < partition.start_offset:
                continue
            for batch in _batches(partition, acknowledgement):
                if batch.last < partition.start_offset:
                    continue
                for runs in _pieces(partition, batch, acknowledgement, member_id):
                    _begin(partition, runs, change, now_ms)
                    yield
    except BaseException:
        partition.complete(change, False, now_ms)
        raise


def _begin(partition: SharePartition, runs: Iterable[tuple[Run, int]], change: Change, now_ms: int) -> None:
    for run, kind in runs:
        if kind == RENEW:
            run.renew(now_ms + partition.limits.lock_duration_ms)
            continue
        state = MEANS[kind]
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


def _pieces(
    partition: SharePartition, batch: InFlightBatch, acknowledgement: Acknowledgement, member_id: str
) -> Iterator[Sequence[tuple[Run, int]]]:
    """Yields the runs of a batch with the acknowledgement type of each, PIECE records at a time; those of a piece are
    checked to be the member's before any of them is cut."""
    if not batch.is_tracked:
        _check(batch.runs.head, member_id)
        starts_inside = batch.first < partition.start_offset <= batch.last
        if (
            len(acknowledgement.types) == 1
            and not starts_inside
            and batch.is_within(acknowledgement.first, acknowledgement.last)
        ):
            _check_types(partition, acknowledgement.types)
            yield [(batch.runs.head, acknowledgement.types[0])]
            return
    first = max(batch.first, acknowledgement.first, partition.start_offset)
    last = min(batch.last, acknowledgement.last)
    for piece_first in range(first, last + 1, PIECE):
        start, end = max(piece_first, partition.start_offset), min(piece_first + PIECE - 1, last)
        for run in batch.part(start, end):
            _check(run, member_id)
        spans = list(_spans(acknowledgement, start, end))
        _check_types(partition, {span.number for span in spans})
        yield batch.cut_by(spans)


def _spans(acknowledgement: Acknowledgement, first: int, last: int) -> Iterator[Span]:
    """Yields the offsets from `first` to `last` as ranges of one type."""
    types, start = acknowledgement.types, first
    if first > last:
        return
    if len(types) == 1:
        yield Span(first, last, types[0])
        return
    for kind, same in groupby(types[first - acknowledgement.first : last - acknowledgement.first + 1]):
        following = start + len(list(same))
        yield Span(start, following - 1, kind)
        start = following


def _check_types(partition: SharePartition, types: Iterable[int]) -> None:
    """Raises INVALID_REQUEST for an unknown type, INVALID_RECORD_STATE for a renewal if the group allows none."""
    for kind in types:
        if kind == RENEW:
            if not partition.limits.renew_enabled:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group."
                )
        elif kind not in MEANS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown acknowledge type id: {kind}")


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
