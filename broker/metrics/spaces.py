"""The room on the volumes of log directories, asked for by a thread: a disk that does not answer holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from broker.workers import Workers
from storage.disk import Disk, Space

WITHIN_S: Final = 1.0
"""A scrape waits no longer, and goes without."""


class VolumeSpaces:
    """Asks for the room on volumes, once at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._workers = Workers(1, "metrics")
        self._measuring: asyncio.Task[dict[str, Space]] | None = None

    def close(self) -> None:
        self._workers.close()

    async def measured(self, directories: list[str]) -> Mapping[str, Space]:
        """Returns the room by directory; nothing while a disk does not answer."""
        if self._measuring is None:
            work = self._workers.call(lambda: self._measure(directories))
            self._measuring = asyncio.ensure_future(work)
        done, _ = await asyncio.wait((self._measuring,), timeout=WITHIN_S)
        if not done:
            return {}
        measured, self._measuring = self._measuring, None
        return measured.result()

    def _measure(self, directories: list[str]) -> dict[str, Space]:
        spaces: dict[str, Space] = {}
        for directory in directories:
            try:
                spaces[directory] = self._disk.space(directory)
            except OSError:
                continue  # whoever writes to it will find out, and act on it
        return spaces
