"""Reads the offsets of batches in a share partition's fetched bytes, and finds aborted batches.

It reads only as many batches as can be acquired, and only a few numbers of each header.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.share_partition.request import Acquired, FetchedBatch
from protocol.records import batch
from protocol.records.control import ControlType, decode_marker
from protocol.records.record import read_records
from protocol.tuples import new_tuple
from protocol.types import Buffer
from storage.segment.txn_index import AbortedTxn

OFFSETS: Final = struct.Struct(">qi11xi")
"""Base offset, batch length and last offset delta, in the first 27 bytes of a batch."""

SPARSE: Final = 2
"""Batches without acquired records are left out if that makes the answer smaller by this factor."""


def scan(view: memoryview, until: int) -> list[FetchedBatch]:
    """Returns the whole batches that begin at or before the offset `until`."""
    batches: list[FetchedBatch] = []
    # Runs thirty times per fetch: names are looked up in advance, and tuples are made without their class's
    # constructor.
    add, make, unpack = batches.append, new_tuple, OFFSETS.unpack_from
    position, size, overhead = 0, len(view), batch.LOG_OVERHEAD
    last_header = size - batch.HEADER_SIZE
    while position <= last_header:
        base, length, delta = unpack(view, position)
        end = position + overhead + length
        if base > until or end > size:
            break
        add(make(FetchedBatch, (base, base + delta, position, end)))
        position = end
    return batches


def covering(view: memoryview, fetched: Iterable[FetchedBatch], acquired: list[Acquired]) -> memoryview:
    """Returns the bytes from the first batch with acquired records to the last."""
    first, last = acquired[0].first, acquired[-1].last
    start = end = -1
    for entry in fetched:
        if entry.last >= first and start < 0:
            start = entry.position
        if entry.first <= last:
            end = entry.end
    return view[start:end]


def sparse(view: memoryview, fetched: Sequence[FetchedBatch], acquired: list[Acquired]) -> Buffer:
    """Returns the bytes of the batches with acquired records. Leaves out the batches between them if that saves
    much.
    """
    needed: list[FetchedBatch] = []
    at = 0
    for entry in fetched:
        while at < len(acquired) and acquired[at].last < entry.first:
            at += 1
        if at == len(acquired):
            break
        if acquired[at].first <= entry.last:
            needed.append(entry)
    size = sum(entry.end - entry.position for entry in needed)
    if not needed or size * SPARSE > needed[-1].end - needed[0].position:
        return covering(view, fetched, acquired)
    return b"".join(view[entry.position : entry.end] for entry in needed)


def aborted_batches(
    view: Buffer, fetched: Iterable[FetchedBatch], transactions: Iterable[AbortedTxn]
) -> list[tuple[int, int]]:
    """Returns the first and last offset of each batch whose transaction was aborted. `transactions` may begin before
    the bytes that were read."""
    waiting = deque(sorted(transactions, key=lambda transaction: transaction.first_offset))
    if not waiting:
        return []
    aborted: set[int] = set()
    batches = []
    for entry in fetched:
        header = batch.read_header(view, entry.position)
        while waiting and waiting[0].first_offset <= entry.last:
            aborted.add(waiting.popleft().producer_id)
        if header.is_control:
            if _is_abort(view, entry.position, header):
                aborted.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborted:
            batches.append((entry.first, entry.last))
    return batches


def _is_abort(view: Buffer, position: int, header: batch.BatchHeader) -> bool:
    marker = decode_marker(next(iter(read_records(view, position, header))))
    return marker is not None and marker.kind is ControlType.ABORT
