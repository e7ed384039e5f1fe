"""Decides on a member's acknowledgements of its records: of whole batches, parts of them, or single records.

All of a request's acknowledgements of a partition are applied, or none is. A long acknowledgement is decided in parts:
each part reserves its records, and all parts are written once the last part is decided.
Source: SharePartition.acknowledge (KIP-932, KIP-1222).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from coordinator.engine.result import Effect, Reply, Result, Ticket, answered, reply
from coordinator.share.batches import StateBatch
from coordinator.share_partition.cache import InFlightBatch
from coordinator.share_partition.run import Run, StateRecord, given_up, settled
from coordinator.share_partition.share_partition import PIECE, SharePartition
from coordinator.share_partition.states import ACQUIRED, ARCHIVING, MEANS, RENEW, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError
from protocol.tuples import new_tuple

IN_CHANGE: Final = "The record state is invalid. The acknowledgement of delivery could not be completed."


class Acknowledgement(NamedTuple):
    """Records first to last, with one type for all of them, or a type for each."""

    first: int
    last: int
    types: Sequence[int]


class ReservedPart(NamedTuple):
    """A decided part of a long acknowledgement."""

    record: StateRecord
    """The changes of the part: reserved, and not written yet."""
    remaining: Sequence[Acknowledgement]
    """The acknowledgements that are not decided yet."""


def acknowledge(
    partition: SharePartition,
    member_id: str,
    acknowledgements: Sequence[Acknowledgement],
    is_first: bool,
    ticket: Ticket[ReservedPart | None],
    now_ms: int,
) -> Result[StateRecord]:
    """Writes the changes of these acknowledgements. If they are too many for one decision, or continue such a request,
    reserves a part of them and replies with a ReservedPart.

    Raises INVALID_REQUEST and INVALID_RECORD_STATE.
    """
    part = _Deciding(partition, member_id, now_ms)
    remaining = part.decide(acknowledgements)
    record, effects = part.record, part.effects
    if is_first and not remaining:
        return Result((record,) if record else (), (reply(ticket, None),), effects)
    return Result((), (Reply(ticket, ReservedPart(record, remaining)),), (partial(partition.reserve, record), *effects))


def write(record: StateRecord, ticket: Ticket[None], now_ms: int) -> Result[StateRecord]:
    """Writes the changes of a part."""
    return answered(ticket, None, (record,) if record else ())


def withdraw(
    partition: SharePartition, records: Sequence[StateRecord], ticket: Ticket[None], now_ms: int
) -> Result[StateRecord]:
    """Undoes the changes of parts that will not be written."""
    return Result(
        (), (Reply(ticket, None),), [partial(partition.conclude, record, False, now_ms) for record in records]
    )


class _Deciding:
    """The changes of acknowledgements, up to PIECE of them."""

    __slots__ = (
        "_changed_until",
        "_left",
        "_limits",
        "_lock_until_ms",
        "_member_id",
        "_partition",
        "effects",
        "record",
    )

    def __init__(self, partition: SharePartition, member_id: str, now_ms: int) -> None:
        self._partition = partition
        self._member_id = member_id
        self._limits = partition.limits
        self._lock_until_ms = now_ms + self._limits.lock_duration_ms
        self._left = PIECE
        self._changed_until = -1
        """The last offset that the record changes."""
        self.record: list[StateBatch] = []
        self.effects: list[Effect] = []

    def decide(self, acknowledgements: Sequence[Acknowledgement]) -> Sequence[Acknowledgement]:
        """Decides on acknowledgements, and returns what remains of them."""
        partition = self._partition
        for at, acknowledgement in enumerate(acknowledgements):
            if acknowledgement.last < partition.start_offset:
                continue
            for batch in _batches(partition, acknowledgement):
                if batch.last < partition.start_offset:
                    continue
                if len(acknowledgement.types) > 1 and not batch.is_tracked:
                    self.effects.append(partial(batch.cut, batch.first, batch.last))
                for run, first, last, kind in self._changes(batch, acknowledgement):
                    if not self._left:
                        return (_rest(acknowledgement, first), *acknowledgements[at + 1 :])
                    self._change(run, first, last, kind)
        return ()

    def _changes(self, batch: InFlightBatch, acknowledgement: Acknowledgement) -> Iterator[tuple[Run, int, int, int]]:
        """Yields the parts of the batch's runs with the acknowledgement type of each, once the run is checked."""
        types, start = acknowledgement.types, max(acknowledgement.first, self._partition.start_offset)
        for run in batch.part(start, acknowledgement.last):
            self._check(run)
            first, last = max(run.first, start), min(run.last, acknowledgement.last)
            if len(types) == 1:
                yield run, first, last, types[0]
                continue
            for kind, same in groupby(types[first - acknowledgement.first : last - acknowledgement.first + 1]):
                following = first + len(list(same))
                yield run, first, following - 1, kind
                first = following

    def _check(self, run: Run) -> None:
        """Raises INVALID_RECORD_STATE unless the member has acquired the run, and has not just acknowledged it."""
        if run.change is not None:
            message = IN_CHANGE
        elif run.state is not ACQUIRED:
            message = "The batch cannot be acknowledged. The batch is not in the acquired state."
        elif run.member_id != self._member_id:
            message = "Member is not the owner of batch record"
        else:
            return
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, message)

    def _change(self, run: Run, first: int, last: int, kind: int) -> None:
        limits = self._limits
        self._left -= 1
        if first <= self._changed_until:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, IN_CHANGE)
        if kind == RENEW:
            if not limits.renew_enabled:
                message = "Renewing acquisition locks is not enabled for the group."
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, message)
            self.effects.append(partial(self._partition.renew, first, last, self._lock_until_ms))
            return
        if kind not in MEANS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown acknowledge type id: {kind}")
        state = MEANS[kind]
        if kind == AcknowledgeType.REJECT:
            state = given_up(limits)
            if state is ARCHIVING and run.delivery_count >= limits.max_delivery_count:
                self.effects.append(partial(self._partition.rejected.update, range(first, last + 1)))
        state = settled(state, run.delivery_count, limits)
        self.record.append(new_tuple(StateBatch, (first, last, state, run.delivery_count)))
        self._changed_until = last


def _rest(acknowledgement: Acknowledgement, first: int) -> Acknowledgement:
    """Returns the acknowledgement from offset `first` on."""
    types = acknowledgement.types
    return acknowledgement._replace(
        first=first, types=types if len(types) == 1 else types[first - acknowledgement.first :]
    )


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
