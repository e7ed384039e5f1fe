"""The broker's end of a cleaner process: sends orders, and receives their outcomes."""

from __future__ import annotations

import os
import sys
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, NamedTuple

from protocol.lazy import lazy
from storage.cleaner.job import Cleaned, CleanedSegment, CleaningJob

if TYPE_CHECKING:
    import pickle
else:  # with the first log to clean
    pickle = lazy("pickle")


class Order(NamedTuple):
    """A log to clean, and the maximum rate."""

    job: CleaningJob
    bytes_per_second: float


class Failed(NamedTuple):
    """The reason why a log was not cleaned, with the system's error number if the disk failed, otherwise 0."""

    errno: int
    reason: str


Outcome = CleanedSegment | Cleaned | Failed


class Died(Exception):
    """The process ended before it was done."""


class CleanerProcess:
    """A process, for one log at a time. Its calls block: use them in a worker thread."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def order(self, order: Order) -> None:
        """Begins to clean a log. Raises OSError if no process can be started, Died."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            pickle.dump(order, self._process.stdin)
            self._process.stdin.flush()
        except OSError as error:
            raise Died(str(error)) from error

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-P", "-m", "broker.disks.cleaner_process"]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, env=environment)

    def outcome(self) -> Outcome:
        """Returns the next outcome of the order. Raises Died."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            outcome: Outcome = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError, OSError) as error:
            self.kill()
            raise Died(f"exit code {self._process.returncode}") from error
        return outcome

    def kill(self) -> None:
        """Kills the process, which is safe at any time: its unfinished files are not in use."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
