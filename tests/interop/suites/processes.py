"""The process of a suite's tests: its output goes to a file, and both the time and the output are limited."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

MAX_OUTPUT_BYTES: Final = 200_000_000
"""Maximum output of a program. A test of franz-go whose transaction is lost logs a line every three microseconds."""
POLL_S: Final = 0.5


class Process(NamedTuple):
    """Runs programs, one after another, whose output is appended to a file."""

    output: Path
    timeout_s: float
    environment: Mapping[str, str]
    """Variables of all programs."""

    def run(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None) -> list[str]:
        """Runs a program to its end, kills the processes that it left, and returns the lines of its output."""
        begins = self.output.stat().st_size
        with self.output.open("a") as output:
            program = subprocess.Popen(
                command, env={**os.environ, **self.environment, **environment}, cwd=cwd, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            try:
                reason = self._wait(program, begins)
                output.write(f"\nkilled after {reason}\n" if reason else "")
            finally:  # `go` doesn't end the program that it has built
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
                program.wait()
        return self.output.read_bytes()[begins:].decode(errors="replace").splitlines()

    def _wait(self, program: subprocess.Popen[bytes], begins: int) -> str:
        """Returns once a program has ended, or has reached a limit, which it names."""
        deadline_s = time.monotonic() + self.timeout_s
        while time.monotonic() < deadline_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(POLL_S)
                return ""
            if self.output.stat().st_size - begins > MAX_OUTPUT_BYTES:
                return f"{MAX_OUTPUT_BYTES:,} bytes of output"
        return f"{self.timeout_s:g} s"
