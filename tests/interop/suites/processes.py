"""The process of a suite's tests: its output goes to a file, and it ends at the latest after a time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


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
                program.wait(self.timeout_s)
            except subprocess.TimeoutExpired:
                output.write(f"killed after {self.timeout_s:g} s\n")
            finally:  # `go` doesn't end the program that it has built
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
                program.wait()
        return self.output.read_bytes()[begins:].decode(errors="replace").splitlines()
