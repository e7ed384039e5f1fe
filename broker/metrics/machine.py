"""The machine, as far as it tells of this process: the room on the volumes of log directories, and the open files.

A thread asks for it: a disk that does not answer holds nobody up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker.workers import Workers
from storage.disk import Disk, Space

WITHIN_S: Final = 1.0
"""A scrape waits no longer, and goes without."""

OPEN_FILES: Final = "/proc/self/fd"


class Machine(NamedTuple):
    """The answers of the machine that came in time."""

    spaces: Mapping[str, Space]
    """The room on the volumes, by log directory."""
    open_files: int | None
    """None where the system does not tell."""


UNKNOWN: Final = Machine({}, None)


class MachineWatch:
    """Asks the machine, once at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._workers = Workers(1, "metrics")
        self._look: asyncio.Task[Machine] | None = None

    def close(self) -> None:
        """Ends the thread."""
        self._workers.close()

    async def look(self, directories: list[str]) -> Machine:
        """Returns what the machine says; nothing while a disk does not answer."""
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
            return len(self._disk.listdir(OPEN_FILES)) - 1  # one is of this look
        except OSError:
            return None

    def _spaces(self, directories: list[str]) -> Mapping[str, Space]:
        spaces: dict[str, Space] = {}
        for directory in directories:
            try:
                spaces[directory] = self._disk.space(directory)
            except OSError:
                continue  # whoever writes to it will find out, and act on it
        return spaces
