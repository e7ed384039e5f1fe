"""Changes of znodes, as values, and their division into multis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MAX_OPERATIONS: Final = 200
"""Maximum number of operations of a multi: ZooKeeper does nothing else while it carries one out."""

MAX_BYTES: Final = 256 * 1024
"""Maximum number of bytes of data in a multi: a server accepts requests of up to a megabyte (jute.maxbuffer)."""

OVERHEAD_BYTES: Final = 100
"""Upper bound of an operation's size without its path and data."""


class Create(NamedTuple):
    """A new znode."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequence: bool = False


class Write(NamedTuple):
    """New data of a znode, if the znode has this version; -1 matches any version."""

    path: str
    data: bytes
    version: int = -1


class Delete(NamedTuple):
    """The deletion of a znode, if the znode has this version; -1 matches any version."""

    path: str
    version: int = -1


class CheckVersion(NamedTuple):
    """A check that a znode has this version; otherwise the multi fails."""

    path: str
    version: int


Operation = Create | Write | Delete | CheckVersion


def multis(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    """Yields the operations in order, in lists that each fit into a multi."""
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
