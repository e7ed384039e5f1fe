"""Counts the work of a call in executed lines of Python, which is the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Tracer = Callable[[FrameType, str, Any], Any]


def lines_run(work: Callable[[], object]) -> int:
    """Returns the number of lines of Python that the call executes; each turn of a loop or comprehension counts."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Tracer:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
