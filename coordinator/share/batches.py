"""State batches: ranges of records in one delivery state, and how two lists of them become one.

What is newer wins, except that a record's delivery count never falls, nor, at the same count, its state; neighbours
that are alike become one batch; nothing stays below the start offset. Source: PersisterStateBatchCombiner (KIP-932).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple

NO_START_OFFSET: Final = -1
"""In a write: the start offset stays as it is."""


class StateBatch(NamedTuple):
    """Records first to last, both included. Batches sort by offsets, then by what is known of the delivery."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


_last: Final = attrgetter("last_offset")


def combine(so_far: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """The batches of both, in order, without overlaps. `so_far` has been combined before: of its batches only those
    are looked at that touch a new one."""
    waiting = sorted(_from(new, start_offset), reverse=True)
    at = bisect_left(so_far, start_offset, key=_last)
    if at < len(so_far) and so_far[at].first_offset < start_offset:
        waiting.append(StateBatch(start_offset, *so_far[at][1:]))
        at += 1
    result: list[StateBatch] = []
    while waiting:
        untouched = bisect_left(so_far, waiting[-1].first_offset - 1, at, key=_last)
        result += so_far[at:untouched]
        group, at = _group(so_far, untouched, waiting)
        result += _merge(group)
    result += so_far[at:]
    return result


def _group(so_far: Sequence[StateBatch], at: int, waiting: list[StateBatch]) -> tuple[list[StateBatch], int]:
    """Takes off `waiting`, whose last is the first by offset, the batches that touch each other or a batch that was
    there. Returns them with the batches from `at` on that they touch, and where the others begin."""
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
    """Yields the parts of the batches at the start offset or beyond. One that ends before it begins, which no log
    should have, could be cut into pieces without end."""
    for state_batch in batches:
        if state_batch.first_offset > state_batch.last_offset:
            continue
        if state_batch.first_offset >= start_offset:
            yield state_batch
        elif state_batch.last_offset >= start_offset:
            yield StateBatch(start_offset, *state_batch[1:])


def _merge(batches: list[StateBatch]) -> list[StateBatch]:
    """Takes the first two batches off the heap until they are apart; what is left of the losing one goes back."""
    heap = batches
    heapify(heap)
    done: list[StateBatch] = []
    current = heappop(heap)
    while heap:
        candidate = heappop(heap)
        if candidate.first_offset > current.last_offset:
            _append(done, current)
            current = candidate
        elif candidate[2:] == current[2:]:
            last = max(current.last_offset, candidate.last_offset)
            current = StateBatch(current.first_offset, last, *current[2:])
        else:
            current = _overlap(current, candidate, heap)
    _append(done, current)
    return done


def _append(done: list[StateBatch], batch: StateBatch) -> None:
    """Appends a batch, or lengthens the one before it where both are alike and there is nothing between them."""
    before = done[-1] if done else None
    if before is not None and before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
        done[-1] = StateBatch(before.first_offset, *batch[1:])
    else:
        done.append(batch)


def _overlap(current: StateBatch, candidate: StateBatch, heap: list[StateBatch]) -> StateBatch:
    """The first of the pieces of two that overlap and differ; the others go onto the heap."""
    winner, loser = (candidate, current) if _rank(candidate) >= _rank(current) else (current, candidate)
    pieces = [winner]
    if loser.first_offset < winner.first_offset:
        pieces.append(StateBatch(loser.first_offset, winner.first_offset - 1, *loser[2:]))
    if loser.last_offset > winner.last_offset:
        pieces.append(StateBatch(winner.last_offset + 1, loser.last_offset, *loser[2:]))
    first = min(pieces)
    for piece in pieces:
        if piece is not first:
            heappush(heap, piece)
    return first


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state
