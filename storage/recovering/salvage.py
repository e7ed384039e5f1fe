"""Finds whole batches among bytes that are damaged."""

from __future__ import annotations

import re
from collections.abc import Iterator

from protocol.errors import KafkaError
from protocol.records.batch import AT_LENGTH, HEADER_SIZE, BatchHeader, read_header, validate
from protocol.types import Buffer

_FRONT = re.compile(rb"(?=\x00.{7}\x02)", re.DOTALL)
"""A batch from its length on: less than 16 MiB, then the leader epoch and magic 2."""


def whole_batches(buffer: Buffer, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of each whole batch from `start` on, whatever is between the batches. A batch is whole
    if its CRC is right: base offset and leader epoch may be damaged nevertheless."""
    while (front := _FRONT.search(buffer, start + AT_LENGTH)) is not None:
        position = front.start() - AT_LENGTH
        header = _whole(buffer, position)
        if header is not None:
            yield position, header
        start = position + (1 if header is None else header.size_bytes)


def _whole(buffer: Buffer, position: int) -> BatchHeader | None:
    if len(buffer) - position < HEADER_SIZE:
        return None
    header = read_header(buffer, position)
    if not 0 <= header.records_count <= header.last_offset_delta + 1:  # before the CRC of what is no batch
        return None
    try:
        validate(buffer, position, header)
    except KafkaError:
        return None
    return header
