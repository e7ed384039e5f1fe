"""A server of Odradek's as a process: its options, its life, its log."""

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

START_S: Final = 60.0
"""A start takes a fifth of a second; on a machine that is busy with many, much longer."""

STOP_S: Final = 30.0

LAUNCH: Final = """\
import sys
root = sys.argv.pop(1)
sys.path.insert(0, root)
import odradek
sys.path.remove(root)
sys.exit(odradek.main())
"""
"""Runs the command of this very package, wherever it is, and leaves the path of all else as it was."""

FOREIGN: Final = ("KAFKA_", "COV_CORE_", "COVERAGE_", "ODRADEK_")
"""Prefixes of environment variables that are not for the broker: options of another, and what would measure it."""

SLOWING: Final = frozenset({"PYTHONDEVMODE", "PYTHONWARNINGS", "PYTHONASYNCIODEBUG", "PYTHONTRACEMALLOC", "PYTHONPATH"})
"""Those that are for the process of the tests alone."""

TAIL_BYTES: Final = 20_000

started: WeakSet[ServerProcess] = WeakSet()
"""The servers of this process whose logs there are, for reports of tests."""


class Ready(NamedTuple):
    """The addresses of a server that serves."""

    address: str
    control: str
    """The empty string where there is no control server."""


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
        """True from a start until the process has ended, also while it is paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_paused(self) -> bool:
        return self._is_paused and self.is_running

    @property
    def pid(self) -> int:
        """Returns the number of the process. Raises BrokerError where there is none."""
        return self._running().pid

    @property
    def log(self) -> str:
        """Returns what it has logged, over all of its starts."""
        return self.log_after(0)

    @property
    def log_size(self) -> int:
        """Returns the bytes of its log."""
        return self._log.stat().st_size if self._log.exists() else 0

    def log_after(self, position: int, size_bytes: int | None = None) -> str:
        """Returns what it has logged from a position on, or the last `size_bytes` of that."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            first = position if size_bytes is None else max(position, self.log_size - size_bytes)
            file.seek(first)
            return file.read().decode(errors="replace")

    def start(self, timeout_s: float = START_S) -> Ready:
        """Returns once it serves. Raises BrokerError, with the end of its log, where it does not."""
        if self.is_running:
            raise BrokerError(f"{self.name} runs already, as process {self.pid}")
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
        """Ends a process that did not get ready; returns why it did not."""
        process = self._running()
        try:
            status: int | None = process.wait(0.1)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        return f"was not ready within {timeout_s:g} s" if status is None else f"ended with status {status}"

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Asks it to end in order, and returns its status. Raises BrokerError, and kills it, where it does not end."""
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
        """Ends it at once, with all that it started, as a crash does."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._reap()

    def pause(self) -> None:
        """Makes it stand still, as a machine does that swaps: connections stay, nothing is answered. Raises
        BrokerError where it does not run."""
        self._running().send_signal(signal.SIGSTOP)
        self._is_paused = True

    def resume(self) -> None:
        """Lets it go on after `pause`. Raises BrokerError where it does not run."""
        if self._is_paused:
            self._running().send_signal(signal.SIGCONT)
            self._is_paused = False

    @property
    def tail(self) -> str:
        """Returns the end of its log."""
        return self.log_after(0, TAIL_BYTES)

    def forget(self) -> None:
        """Kills it; its log is in no report any more."""
        self.kill()
        started.discard(self)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError(f"{self.name} does not run")
        return self._process

    def _reap(self) -> None:
        """Forgets a process that has ended."""
        if self._process is not None:
            self._process.wait()
            self._home.ended(self._process)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


def command(*words: str) -> list[str]:
    """Returns the command line of this very package's `odradek`, installed or not."""
    return python(LAUNCH, *words)


def python(program: str, *words: str) -> list[str]:
    """Returns the command line of a Python program, whose first argument is the folder that has this package."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(odradek.__file__)))
    return [sys.executable, "-P", "-c", program, root, *words]


def environment() -> dict[str, str]:
    """Returns the environment of a server: this process's, without what would change the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN) and name not in SLOWING}


def parse_ready(lines: bytes) -> Ready | None:
    """Returns the addresses of the lines `control HOST:PORT`, which may be missing, and `ready HOST:PORT`."""
    words = dict(line.split(" ", 1) for line in lines.decode(errors="replace").splitlines() if " " in line)
    if "ready" not in words or not lines.endswith(b"\n"):
        return None
    return Ready(words["ready"], words.get("control", ""))


def _lines(output: IO[bytes], deadline: float) -> bytes:
    """Returns what comes until it is ready, its output ends, or the time is over."""
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
    """Writes a properties file of Java's, which nobody else may read: there are passwords in it."""
    path.touch(0o600)
    path.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in settings.items()), encoding="utf-8")


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text.startswith((" ", "\f")) else text
