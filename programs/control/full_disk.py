"""A disk that can pretend to be full for the records of partitions."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Final

from storage.disk import Buffer, OsDisk, Space
from storage.open_files import OpenFiles

RECORDS: Final = ".log"
METADATA_FOLDER: Final = "__cluster_metadata-"
"""The folder whose records are always written: a broker stops if its metadata log fails."""


class FullableDisk(OsDisk):
    """The operating system's files, with a switch that makes writes of records fail with ENOSPC."""

    def __init__(self, open_files: OpenFiles) -> None:
        super().__init__(open_files)
        self.on_refused: Callable[[], None] | None = None
        """Called for every write that fails; None while the disk isn't full."""
        self._with_records: set[int] = set()

    def open(self, path: str, *, writable: bool = True, create: bool = False, truncate: bool = False) -> int:
        handle = super().open(path, writable=writable, create=create, truncate=truncate)
        if path.endswith(RECORDS) and METADATA_FOLDER not in path:
            self._with_records.add(handle)
        return handle

    def close(self, handle: int) -> None:
        self._with_records.discard(handle)
        super().close(handle)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], offset: int) -> int:
        if self.on_refused is not None and handle in self._with_records:
            self.on_refused()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwritev(handle, buffers, offset)

    def space(self, path: str) -> Space:
        space = super().space(path)
        return space if self.on_refused is None else space._replace(usable_bytes=0)
