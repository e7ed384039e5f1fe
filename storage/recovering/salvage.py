"""Finds valid batches in damaged bytes, behind a damaged batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from protocol.errors import KafkaError
from protocol.records.batch import AT_MAGIC, HEADER_SIZE, LOG_OVERHEAD, MAGIC_V2, BatchHeader
from storage.segment.batches import check, header_at

WASTE_FACTOR = 4
"""Bytes with a wrong CRC that a search may check, for each byte that it searches. Records can contain bytes that look
like batch headers; without a limit the search would take quadratic time."""

FREE_WASTE_BYTES = 16 << 20
"""Bytes with a wrong CRC that any search may check."""

MIN_SIZE = LOG_OVERHEAD + 14
"""The smallest entry of a log: a v0 message without key and value."""

# From the magic on: the CRC, then the attributes, which use seven bits.
_FRONT = re.compile(rb"\x02(?=.{4}\x00[\x00-\x7f])", re.DOTALL)


def sound_batches(content: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of the batches in these bytes that have a valid CRC.

    After a damaged batch, tries the position that its length leads to, then each position at which a v2 batch may
    begin.
    """
    position, end = 0, len(content)
    waste = WASTE_FACTOR * end + FREE_WASTE_BYTES
    fronts: Iterator[int] = iter(())
    while position + MIN_SIZE <= end:
        header = _header_at(content, position)
        if header is not None and _is_sound(content, position, header):
            yield position, header
            position += header.size_bytes
            fronts = iter(())
            continue
        if header is not None:
            waste -= header.size_bytes
            following = position + header.size_bytes
            after = _header_at(content, following)
            if after is not None and _is_sound(content, following, after):
                position = following
                continue
        if waste < 0:
            return
        front = next((at for at in fronts if at > position), None)
        if front is None:
            fronts = _fronts(content, position + 1)
            front = next(fronts, None)
        if front is None:
            return
        position = front


def _fronts(content: memoryview, start: int) -> Iterator[int]:
    """Yields the positions, from `start` on, at which a v2 batch may begin."""
    for match in _FRONT.finditer(content, start + AT_MAGIC):
        yield match.start() - AT_MAGIC


def _header_at(content: memoryview, position: int) -> BatchHeader | None:
    """Returns the header at this position, if its batch fits into the content."""
    if position + MIN_SIZE > len(content):
        return None
    magic = content[position + AT_MAGIC]
    if magic > MAGIC_V2 or (magic == MAGIC_V2 and position + HEADER_SIZE > len(content)):
        return None
    header = header_at(content, position)
    smallest = HEADER_SIZE if magic == MAGIC_V2 else MIN_SIZE
    return header if smallest <= header.size_bytes <= len(content) - position else None


def _is_sound(content: memoryview, position: int, header: BatchHeader) -> bool:
    try:
        check(content, position, header)
    except KafkaError:
        return False
    return True
