"""Reads data about the machine: the free space of log directories' volumes, and the open files.

A thread reads them, so that a disk that doesn't answer delays nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.workers import Workers
from storage.disk import Disk, Space

WITHIN_S: Final = 1.0
"""Maximum wait of a scrape, which then continues without these data."""

OPEN_FILES: Final = "/proc/self/fd"


class Machine(NamedTuple):
    """The machine's data that came in time."""

    spaces: Mapping[str, Space]
    """The space of the volumes, by log directory."""
    open_files: int | None
    """The number of open files; None if the system doesn't report it."""


UNKNOWN: Final = Machine({}, None)


class MachineWatch:
    """Reads the machine's data, once at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._workers = Workers(1, "metrics")
        self._look: asyncio.Task[Machine] | None = None

    def close(self) -> None:
        """Ends the thread."""
        self._workers.close()

    async def look(self, directories: list[str]) -> Machine:
        """Returns the machine's data; UNKNOWN while a disk doesn't answer."""
        if self._look is None:
            work = self._workers.call(lambda: self._ask(directories))
            self._look = asyncio.ensure_future(work)
        done, _ = await asyncio.wait((self._look,), timeout=WITHIN_S)
        if not done:
            return UNKNOWN
        look, self._look = self._look, None
        return look.result()

    def _ask(self, directories: list[str]) -> Machine:
        return Machine(self._spaces(directories), self._open_files())

    def _open_files(self) -> int | None:
        try:
            return len(self._disk.listdir(OPEN_FILES)) - 1  # one is open for this call
        except OSError:
            return None

    def _spaces(self, directories: list[str]) -> Mapping[str, Space]:
        spaces: dict[str, Space] = {}
        for directory in directories:
            try:
                spaces[directory] = self._disk.space(directory)
            except OSError:
                continue  # a write to it will fail too, and be handled
        return spaces
