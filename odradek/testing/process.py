"""An Odradek server as a process: its options, its start and stop, its log."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple
from weakref import WeakSet

import odradek
from odradek.testing.errors import BrokerError
from odradek.testing.guard import GuardedDirectory

__tracebackhide__ = True

START_S: Final = 60.0
"""Longest start. It usually takes a fifth of a second, but much longer on a busy machine."""

STOP_S: Final = 30.0

LAUNCH: Final = """\
import sys
root = sys.argv.pop(1)
sys.path.insert(0, root)
import odradek
sys.path.remove(root)
sys.exit(odradek.main())
"""
"""Runs the command of this package, from any location, without other changes of the path."""

FOREIGN: Final = ("KAFKA_", "COV_CORE_", "COVERAGE_", "ODRADEK_")
"""Prefixes of environment variables that must not reach the broker: options of other brokers, and coverage
measurement."""

SLOWING: Final = frozenset({"PYTHONDEVMODE", "PYTHONWARNINGS", "PYTHONASYNCIODEBUG", "PYTHONTRACEMALLOC", "PYTHONPATH"})
"""Environment variables that are only for the test process."""

TAIL_BYTES: Final = 20_000

started: WeakSet[ServerProcess] = WeakSet()
"""The servers of this process that have logs, for test reports."""


class Ready(NamedTuple):
    """The addresses of a ready server."""

    address: str
    control: str
    """The control server's address; "" if there is none."""


class ServerProcess:
    """A server in a guarded directory, which can be started again."""

    def __init__(self, name: str, home: GuardedDirectory, settings: Mapping[str, str]) -> None:
        self.name = name
        self.settings = dict(settings)
        self._home = home
        self._file = home.path / f"{name}.properties"
        self._log = home.path / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_paused = False

    @property
    def directory(self) -> Path:
        """Returns the directory of its files."""
        return self._home.path

    @property
    def is_running(self) -> bool:
        """True from the start until the process has ended, including while it is paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_paused(self) -> bool:
        return self._is_paused and self.is_running

    @property
    def pid(self) -> int:
        """Returns the process id. Raises BrokerError if it doesn't run."""
        return self._running().pid

    @property
    def log(self) -> str:
        """Returns the log of all its starts."""
        return self.log_after(0)

    @property
    def log_size(self) -> int:
        """Returns the size of its log in bytes."""
        return self._log.stat().st_size if self._log.exists() else 0

    def log_after(self, position: int, size_bytes: int | None = None) -> str:
        """Returns its log from a position on, or the last `size_bytes` of that."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            first = position if size_bytes is None else max(position, self.log_size - size_bytes)
            file.seek(first)
            return file.read().decode(errors="replace")

    def start(self, timeout_s: float = START_S) -> Ready:
        """Starts the process, and returns once it serves. Raises BrokerError, with the end of its log, if it
        doesn't."""
        if self.is_running:
            raise BrokerError(f"{self.name} already runs, as process {self.pid}")
        self._reap()
        write_properties(self._file, self.settings)
        started.add(self)
        position = self.log_size
        with self._log.open("ab") as log:
            self._process = self._home.start(command("run", str(self._file)), environment(), log)
        self._is_paused = False
        output = self._process.stdout
        assert output is not None, "started with PIPE"
        if (ready := parse_ready(_lines(output, time.monotonic() + timeout_s))) is None:
            reason = self._end_of_start(timeout_s)
            raise BrokerError(f"{self.name} {reason}\n{self.log_after(position, TAIL_BYTES)}")
        return ready

    def _end_of_start(self, timeout_s: float) -> str:
        """Kills a process that didn't become ready. Returns the reason."""
        process = self._running()
        try:
            status: int | None = process.wait(0.1)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        return f"was not ready within {timeout_s:g} s" if status is None else f"ended with status {status}"

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Stops it with SIGTERM, and returns its status. If it doesn't end, kills it and raises BrokerError."""
        process = self._running()
        self.resume()
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(f"{self.name} did not stop within {timeout_s:g} s, and was killed\n{self.tail}") from None
        self._reap()
        return status

    def kill(self) -> None:
        """Kills it and its child processes, like a crash."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._reap()

    def pause(self) -> None:
        """Suspends it, like a machine that swaps: connections stay open, but nothing is answered. Raises BrokerError if
        it doesn't run."""
        self._running().send_signal(signal.SIGSTOP)
        self._is_paused = True

    def resume(self) -> None:
        """Continues it after `pause`. Raises BrokerError if it doesn't run."""
        if self._is_paused:
            self._running().send_signal(signal.SIGCONT)
            self._is_paused = False

    @property
    def tail(self) -> str:
        """Returns the end of its log."""
        return self.log_after(0, TAIL_BYTES)

    def forget(self) -> None:
        """Kills it, and leaves its log out of later reports."""
        self.kill()
        started.discard(self)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError(f"{self.name} does not run")
        return self._process

    def _reap(self) -> None:
        """Clears the process after it has ended."""
        if self._process is not None:
            self._process.wait()
            self._home.ended(self._process)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


def command(*words: str) -> list[str]:
    """Returns the command line of this package's `odradek`, installed or not."""
    return python(LAUNCH, *words)


def python(program: str, *words: str) -> list[str]:
    """Returns the command line of a Python program, whose first argument is the folder that has this package."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(odradek.__file__)))
    return [sys.executable, "-P", "-c", program, root, *words]


def environment() -> dict[str, str]:
    """Returns the environment of a server: this process's, without variables that would affect the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN) and name not in SLOWING}


def parse_ready(lines: bytes) -> Ready | None:
    """Returns the addresses of the lines `control HOST:PORT`, which may be missing, and `ready HOST:PORT`."""
    words = dict(line.split(" ", 1) for line in lines.decode(errors="replace").splitlines() if " " in line)
    if "ready" not in words or not lines.endswith(b"\n"):
        return None
    return Ready(words["ready"], words.get("control", ""))


def _lines(output: IO[bytes], deadline: float) -> bytes:
    """Returns its output until it is ready, the output ends, or the deadline has passed."""
    lines = b""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    while parse_ready(lines) is None:
        left_ms = (deadline - time.monotonic()) * 1000
        if left_ms <= 0 or not poll.poll(left_ms):
            break
        data = os.read(output.fileno(), 4096)
        if not data:
            break
        lines += data
    return lines


def write_properties(path: Path, settings: Mapping[str, str]) -> None:
    """Writes a Java properties file that only this user may read, because it has passwords."""
    path.touch(0o600)
    path.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in settings.items()), encoding="utf-8")


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text.startswith((" ", "\f")) else text
