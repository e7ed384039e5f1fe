"""The disk of a host as one process on it sees it."""

from __future__ import annotations

from typing import Any

from storage.open_files import OpenFiles
from tests.simulation.broker_world import AFTERWARDS
from tests.simulation.cluster.processes import Process
from tests.simulation.faulty_disk import Crash, FaultyDisk


class LifeDisk:
    """A disk on which calls have no effect after the end of their process; a crash of the disk ends the process."""

    def __init__(self, disk: FaultyDisk, process: Process) -> None:
        self._disk = disk
        self._process = process
        self.open_files = OpenFiles()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._disk, name)
        if not callable(attribute) or name in AFTERWARDS:
            return attribute

        def call(*arguments: Any, **named: Any) -> Any:
            if self._process.is_dead:
                raise Crash(name)
            try:
                return attribute(*arguments, **named)
            except Crash:
                self._process.die()
                raise

        self.__dict__[name] = call
        return call
