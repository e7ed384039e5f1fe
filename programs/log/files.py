"""The kinds of files in a data directory, and functions that read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.records.batch import BatchHeader
from storage.disk import Disk
from storage.names import CLEANED, DELETED, SWAP, parse_folder
from storage.recovering.kept import KEPT
from storage.segment.batches import Window, walk

UNFINISHED = (CLEANED, SWAP, DELETED)
"""Suffixes of files that are about to be added or deleted; the file's kind is before the suffix."""


def kind_of(path: str) -> str:
    """Returns a file's extension, or its whole name if it has no extension."""
    name = os.path.basename(path)
    for suffix in (*UNFINISHED, KEPT):
        name = name.removesuffix(suffix)
    stem, dot, extension = name.rpartition(".")
    return f".{extension}" if dot and stem else name


def topic_of(path: str) -> str | None:
    """Returns the topic of the partition folder that has the file."""
    folder = parse_folder(os.path.basename(os.path.dirname(os.path.abspath(path))))
    return None if folder is None else folder.topic_partition.topic


@contextmanager
def window(disk: Disk, path: str) -> Iterator[tuple[Window, int]]:
    """Yields a window on a file's bytes, and the file's size. Raises OSError."""
    handle = disk.open(path, writable=False)
    try:
        size = disk.size(handle)
        mapping = disk.mmap(handle, size) if size else memoryview(b"")
        yield (lambda start, end: mapping[start:end]), size
    finally:
        disk.close(handle)


def batches(disk: Disk, path: str) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yields position, header and bytes of each whole batch. Raises OSError, and KafkaError(CORRUPT_MESSAGE) at the
    first position that can't be a batch."""
    with window(disk, path) as (view, size):
        for position, header in walk(view, 0, size):
            yield position, header, view(position, position + header.size_bytes)
