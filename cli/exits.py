"""The exit codes of every command, and the line for a failure."""

from __future__ import annotations

import os
import sys
from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""The command did not succeed, or found a problem. The output says which part failed."""
MISUSED: Final = 2
"""The arguments or a file of options are wrong; nothing was done."""
UNREACHABLE: Final = 3
"""No broker answered in time."""
DIFFERS: Final = 3
"""`odradek pipeline audit` found a difference."""
INTERRUPTED: Final = 130
"""Ctrl-C, with the exit code that shells use."""


def fail(status: int, *problems: str) -> int:
    """Prints a line for each problem on standard error. Returns the exit code."""
    sys.stdout.flush()
    for problem in problems:
        sys.stderr.write(f"odradek: {problem}\n")
    return status


def discard_output() -> None:
    """Discards output whose reader has closed it, such as `head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
