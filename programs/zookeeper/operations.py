"""Changes of znodes, as values, and how many of them go into one multi."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MAX_OPERATIONS: Final = 200
"""In one multi: ZooKeeper carries it out as a whole, and does nothing else meanwhile."""

MAX_BYTES: Final = 256 * 1024
"""Of the data in one multi: a server takes requests of a megabyte (jute.maxbuffer)."""

OVERHEAD_BYTES: Final = 100
"""The size of an operation beside its path and data, rather more than less."""


class Create(NamedTuple):
    """A new znode."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Write(NamedTuple):
    """New data of a znode, if it has this version; -1 is any."""

    path: str
    data: bytes
    version: int = -1


class Delete(NamedTuple):
    """The end of a znode, if it has this version; -1 is any."""

    path: str
    version: int = -1


class CheckVersion(NamedTuple):
    """Changes nothing; the multi fails unless the znode has this version."""

    path: str
    version: int


Operation = Create | Write | Delete | CheckVersion


def multis(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    """Yields the operations in their order, in lists of which each fits into one multi."""
    batch: list[Operation] = []
    size = 0
    for operation in operations:
        data = operation.data if isinstance(operation, (Create, Write)) else b""
        size_bytes = len(operation.path.encode()) + len(data) + OVERHEAD_BYTES
        if batch and (len(batch) == MAX_OPERATIONS or size + size_bytes > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += size_bytes
    if batch:
        yield batch
