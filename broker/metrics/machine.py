"""Reads the free space of log directories' volumes, and the number of open files.

A thread reads them, so that a disk that hangs delays nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.workers import Workers
from storage.disk import Disk, Space

WITHIN_S: Final = 1.0
"""Longest time that a scrape waits for these data; then it continues without them."""

OPEN_FILES: Final = "/proc/self/fd"


class MachineState(NamedTuple):
    """The machine's data that came in time."""

    spaces: Mapping[str, Space]
    """The space of the volumes, by log directory."""
    open_files: int | None
    """The number of open files; None if the system doesn't report it."""


UNKNOWN: Final = MachineState({}, None)


class MachineWatch:
    """Reads the data, one read at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._workers = Workers(1, "metrics")
        self._look: asyncio.Task[MachineState] | None = None

    def close(self) -> None:
        """Ends the thread."""
        self._workers.close()

    async def look(self, directories: list[str]) -> MachineState:
        """Returns the machine's data; UNKNOWN while a disk doesn't answer."""
        if self._look is None:
            work = self._workers.call(lambda: self._ask(directories))
            self._look = asyncio.ensure_future(work)
        done, _ = await asyncio.wait((self._look,), timeout=WITHIN_S)
        if not done:
            return UNKNOWN
        look, self._look = self._look, None
        return look.result()

    def _ask(self, directories: list[str]) -> MachineState:
        return MachineState(self._spaces(directories), self._open_files())

    def _open_files(self) -> int | None:
        try:
            return len(self._disk.listdir(OPEN_FILES)) - 1  # without the file that listdir itself opens
        except OSError:
            return None

    def _spaces(self, directories: list[str]) -> Mapping[str, Space]:
        spaces: dict[str, Space] = {}
        for directory in directories:
            try:
                spaces[directory] = self._disk.space(directory)
            except OSError:
                continue  # a write to this directory will fail as well, and will be handled
        return spaces
