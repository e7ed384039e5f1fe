"""Real processes under test: servers with a ready line, and clients that read commands."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
STOP_TIMEOUT_S = 30
EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")

RANDOM: Final = random.SystemRandom()
"""No test seeds it, unlike `random.randrange`: workers with the same seed would choose the same ports."""

GIVEN: Final[set[int]] = set()
"""The ports that were returned: their servers may not have started yet, or start again later."""


def free_port() -> int:
    """Returns another free port with each call, for a server that can't choose one itself, starts later or starts
    again."""
    return free_ports_in_a_row(1)


def free_ports_in_a_row(count: int) -> int:
    """Returns the first of several consecutive ports. No other socket gets one by chance: they are below the ephemeral
    range, of which a connection may take any port, and each worker of a test run has a part of its own."""
    ephemeral = int(EPHEMERAL_PORTS.read_text().split()[0])
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = ephemeral // 2 // workers
    while True:
        first = ephemeral // 2 + worker * size + RANDOM.randrange(size - count)
        ports = range(first, first + count)
        if GIVEN.isdisjoint(ports) and all(map(_is_free, ports)):
            GIVEN.update(ports)
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Server:
    """A server process and its log; after a restart it has the same arguments and data."""

    # What has been started and not been forgotten: its log is shown beside a test that fails.
    started: list[Server] = []  # noqa: RUF012

    patience_s: float = 0
    """Minimum time that it may take until it is ready, if that is longer than usual."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def launch(
        self,
        command: Sequence[str],
        ready: str,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
    ) -> re.Match[str]:
        """Starts `command` and waits until its output has a line that matches `ready`."""
        assert self._process is None, f"{self.name} runs already"
        seen = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd,
                env={**os.environ, **(environment or {})},
            )
        Server.started.append(self)
        deadline = time.monotonic() + max(timeout_s, self.patience_s)
        while time.monotonic() < deadline:
            if match := re.search(ready, self.log.read_bytes()[seen:].decode(errors="replace"), re.MULTILINE):
                return match
            if self._process.poll() is not None:
                break
            time.sleep(0.01)  # a program that writes to its log wakes nobody: it can only be read again
        status = self._process.poll()
        self.kill9()
        failure = "did not get ready" if status is None else f"ended with status {status}"
        raise AssertionError(f"{self.name} {failure}\n{self.tail()}")

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Returns the exit code of the process, which has got a signal to end."""
        assert self._process is not None, f"{self.name} is not running"
        status = self._process.wait(timeout_s)
        self._process = None
        return status

    def kill9(self) -> None:
        if self._process is not None:
            self._process.kill()
            self.wait()

    def stop(self) -> int:
        """Stops the process as an operator does; returns the exit code."""
        if self._process is None:
            return 0
        self.signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"{self.name} did not stop within {STOP_TIMEOUT_S} s of SIGTERM") from None

    def forget(self) -> None:
        """Ends the process if it runs, and no longer shows its log."""
        self.kill9()
        Server.started[:] = [server for server in Server.started if server is not self]

    def tail(self, size_bytes: int = 20_000) -> str:
        return self.log.read_bytes()[-size_bytes:].decode(errors="replace") if self.log.exists() else ""


class LineClient:
    """A program that answers each command with lines, the last of which is `done` or `error …`."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, text=True
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def ask(self, command: str, lines: Iterable[str] = (), timeout_s: float = 60) -> list[str]:
        """Returns the lines of the answer; an error there raises an error here with the same text."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{line}\n" for line in (command, *lines)))
        self._process.stdin.flush()
        answer: list[str] = []
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.close()
                raise AssertionError(
                    f"{self.name}: no answer to `{command}` in {timeout_s} s; {self.errors()}"
                ) from None
            if line is None:
                raise AssertionError(f"{self.name} ended during `{command}`; {self.errors()}")
            if line == "done":
                return answer
            if line.startswith("error "):
                raise AssertionError(f"{self.name}: `{command}` failed: {line.removeprefix('error ')}")
            answer.append(line)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill9(self) -> None:
        """Kills the process at once, like a crash."""
        self._process.kill()
        self._process.wait()

    def errors(self) -> str:
        return self._log.read_bytes()[-4000:].decode(errors="replace")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run(
    command: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 120, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program to its end; with `check`, a non-zero exit code fails the test with the output."""
    ended = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, cwd=ROOT, check=False)
    if check:
        assert ended.returncode == 0, (
            f"`{' '.join(map(str, command))}` ended with status {ended.returncode}\n"
            f"{ended.stdout[-4000:].decode(errors='replace')}\n{ended.stderr[-8000:].decode(errors='replace')}"
        )
    return ended
