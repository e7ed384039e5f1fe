"""What a share partition wants to know of the bytes that were read: the batches' offsets, and which are aborted.

Only as many batches are looked at as can be acquired: five numbers of each, no objects of records.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from coordinator.share_partition.acquire import Acquired, Fetched
from protocol.records import batch
from protocol.records.control import ControlType, decode_marker
from protocol.records.record import read_records
from protocol.types import Buffer
from storage.segment.txn_index import AbortedTxn

OFFSETS: Final = struct.Struct(">qi11xi")
"""Base offset, batch length, last offset delta: what the first 27 bytes of a batch have of its place."""

SPARSE: Final = 2
"""Batches of which nothing was acquired are left out of an answer that gets smaller by this factor."""


def scan(view: memoryview, until: int) -> list[Fetched]:
    """The whole batches that begin at or before the offset `until`."""
    result: list[Fetched] = []
    # Thirty times for each fetch: names are looked up before, and a tuple is made past its class's constructor.
    add, make, unpack = result.append, tuple.__new__, OFFSETS.unpack_from
    position, size, overhead = 0, len(view), batch.LOG_OVERHEAD
    last_header = size - batch.HEADER_SIZE
    while position <= last_header:
        base, length, delta = unpack(view, position)
        end = position + overhead + length
        if base > until or end > size:
            break
        add(make(Fetched, (base, base + delta, position, end)))
        position = end
    return result


def covering(view: memoryview, fetched: Iterable[Fetched], acquired: list[Acquired]) -> memoryview:
    """The bytes of the batches that have what was acquired."""
    first, last = acquired[0].first, acquired[-1].last
    start = end = -1
    for each in fetched:
        if each.last >= first and start < 0:
            start = each.position
        if each.first <= last:
            end = each.end
    return view[start:end]


def sparse(view: memoryview, fetched: Sequence[Fetched], acquired: list[Acquired]) -> Buffer:
    """The bytes of the batches that have what was acquired, without those in between if that saves much."""
    needed: list[Fetched] = []
    at = 0
    for each in fetched:
        while at < len(acquired) and acquired[at].last < each.first:
            at += 1
        if at == len(acquired):
            break
        if acquired[at].first <= each.last:
            needed.append(each)
    size = sum(each.end - each.position for each in needed)
    if not needed or size * SPARSE > needed[-1].end - needed[0].position:
        return covering(view, fetched, acquired)
    return b"".join(view[each.position : each.end] for each in needed)


def aborted_batches(
    view: Buffer, fetched: Iterable[Fetched], transactions: Iterable[AbortedTxn]
) -> list[tuple[int, int]]:
    """The offsets of batches whose transaction was aborted. `transactions` may begin before what was read."""
    waiting = deque(sorted(transactions, key=lambda each: each.first_offset))
    if not waiting:
        return []
    aborted: set[int] = set()
    result = []
    for each in fetched:
        header = batch.read_header(view, each.position)
        while waiting and waiting[0].first_offset <= each.last:
            aborted.add(waiting.popleft().producer_id)
        if header.is_control:
            if _is_abort(view, each.position, header):
                aborted.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborted:
            result.append((each.first, each.last))
    return result


def _is_abort(view: Buffer, position: int, header: batch.BatchHeader) -> bool:
    marker = decode_marker(next(iter(read_records(view, position, header))))
    return marker is not None and marker.kind is ControlType.ABORT
