"""A process of a cluster, which may be killed and started again with its data; its cost is counted over all its
starts.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench import cost

READY_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 300.0
"""Timeout of a stop of brokers with ten thousand logs, on two cores."""
LOOK_S = 0.02
TAIL_BYTES = 800


class NotRunning(Exception):
    """A node that ended, or was not ready in time; the message has the end of its log."""


class ClusterProcess:
    """A controller or a broker."""

    def __init__(self, name: str, log: Path, command: Callable[[], list[str]], ready: re.Pattern[bytes]) -> None:
        self.name = name
        self.log = log
        self._command = command
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None
        self._earlier_s = 0.0
        """Processor time of its earlier processes."""
        self._log_begins = 0
        """Position in the log file at which this process begins."""

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def start(self) -> None:
        """Starts the process, and returns at once."""
        with self.log.open("ab") as log:
            self._log_begins = log.tell()
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def wait_until_ready(self) -> None:
        """Waits for the ready line. Raises NotRunning."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._ready.search(self._new_lines()):
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NotRunning(f"{self.name} is not ready: {self.tail()}")
            time.sleep(LOOK_S)

    def _new_lines(self) -> bytes:
        with self.log.open("rb") as log:
            log.seek(self._log_begins)
            return log.read()

    def tail(self) -> str:
        """Returns the end of its log."""
        return self._new_lines()[-TAIL_BYTES:].decode(errors="replace").strip()

    def kill(self) -> int:
        """Kills the process, and returns the time by `time.monotonic_ns()`."""
        assert self._process is not None
        self._note_cost()
        at_ns = time.monotonic_ns()
        self._process.kill()
        self._process.wait()
        self._process = None
        return at_ns

    def stop(self) -> bool:
        """Stops the process cleanly. If that takes too long, kills it and returns False."""
        if self._process is None:
            return True
        if self._process.poll() is None:
            self._note_cost()
            self._process.terminate()
        process, self._process = self._process, None
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        return True

    def _note_cost(self) -> None:
        self._earlier_s += cost.spent(self.pid).seconds

    def cpu_s(self) -> float:
        """Returns the processor time of all its processes, except for the time after the signal to stop."""
        return self._earlier_s + (0.0 if self._process is None else cost.spent(self.pid).seconds)

    def memory(self) -> cost.Memory:
        """Returns the memory of the running process."""
        return cost.memory(self.pid)
