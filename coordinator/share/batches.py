"""State batches: ranges of records in one delivery state, and how two lists of them are combined.

The newer batch wins, except that a record's delivery count never decreases, nor its state at the same count; equal
neighbours become one batch; nothing stays below the start offset. Source: PersisterStateBatchCombiner (KIP-932).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple

NO_START_OFFSET: Final = -1
"""The start offset of a write that doesn't change it."""


class StateBatch(NamedTuple):
    """Records first to last, both included. Batches sort by offsets, then by delivery state and count."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


_last: Final = attrgetter("last_offset")


def combine(so_far: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Returns the combined batches, in order, without overlaps. `so_far` is already combined: only its batches that
    touch a new batch are examined."""
    waiting = sorted(_from(new, start_offset), reverse=True)
    at = bisect_left(so_far, start_offset, key=_last)
    if at < len(so_far) and so_far[at].first_offset < start_offset:
        waiting.append(StateBatch(start_offset, *so_far[at][1:]))
        at += 1
    if len(waiting) == 1 and at == len(so_far):  # as in most writes
        return waiting
    result: list[StateBatch] = []
    while waiting:
        untouched = bisect_left(so_far, waiting[-1].first_offset - 1, at, key=_last)
        result += so_far[at:untouched]
        group, at = _group(so_far, untouched, waiting)
        result += _merge(group)
    result += so_far[at:]
    return result


def _group(so_far: Sequence[StateBatch], at: int, waiting: list[StateBatch]) -> tuple[list[StateBatch], int]:
    """Removes batches from the end of `waiting`, which is sorted by descending offset: the batches that touch each
    other or a batch in `so_far`. Returns them, the batches of `so_far` from `at` on that they touch, and the index of
    the first batch after those."""
    group = [waiting.pop()]
    last = reach = group[0].last_offset
    while True:
        if at < len(so_far) and so_far[at].first_offset <= last + 1:
            batch = so_far[at]
            at += 1
        elif waiting and waiting[-1].first_offset <= reach + 1:
            batch = waiting.pop()
            last = max(last, batch.last_offset)
        else:
            return group, at
        group.append(batch)
        reach = max(reach, batch.last_offset)


def _from(batches: Iterable[StateBatch], start_offset: int) -> Iterable[StateBatch]:
    """Yields the parts of the batches at the start offset or beyond. Skips a batch that ends before it begins, which no
    log should have: it could be split endlessly."""
    for state_batch in batches:
        if state_batch.first_offset > state_batch.last_offset:
            continue
        if state_batch.first_offset >= start_offset:
            yield state_batch
        elif state_batch.last_offset >= start_offset:
            yield StateBatch(start_offset, *state_batch[1:])


def _merge(batches: list[StateBatch]) -> list[StateBatch]:
    """Combines the first two batches until none overlap; the remainders of losing batches are combined in their turn,
    and are few."""
    waiting = sorted(batches, reverse=True)
    remainders: list[StateBatch] = []
    done: list[StateBatch] = []
    current = waiting.pop()
    while waiting or remainders:
        is_remainder = bool(remainders) and (not waiting or remainders[0] < waiting[-1])
        candidate = heappop(remainders) if is_remainder else waiting.pop()
        if candidate.first_offset > current.last_offset:
            _append(done, current)
            current = candidate
        elif candidate[2:] == current[2:]:
            last = max(current.last_offset, candidate.last_offset)
            current = StateBatch(current.first_offset, last, *current[2:])
        else:
            current = _overlap(current, candidate, remainders)
    _append(done, current)
    return done


def _append(done: list[StateBatch], batch: StateBatch) -> None:
    """Appends a batch, or extends the last batch if it is adjacent and equal."""
    before = done[-1] if done else None
    if before is not None and before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
        done[-1] = StateBatch(before.first_offset, *batch[1:])
    else:
        done.append(batch)


def _overlap(current: StateBatch, candidate: StateBatch, remainders: list[StateBatch]) -> StateBatch:
    """Returns the first piece of two different batches that overlap; the other pieces go onto the heap of
    remainders."""
    winner, loser = (candidate, current) if _rank(candidate) >= _rank(current) else (current, candidate)
    pieces = [winner]
    if loser.first_offset < winner.first_offset:
        pieces.append(StateBatch(loser.first_offset, winner.first_offset - 1, *loser[2:]))
    if loser.last_offset > winner.last_offset:
        pieces.append(StateBatch(winner.last_offset + 1, loser.last_offset, *loser[2:]))
    first = min(pieces)
    for piece in pieces:
        if piece is not first:
            heappush(remainders, piece)
    return first


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state
