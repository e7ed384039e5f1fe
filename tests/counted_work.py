"""Counts the work of a call in lines of Python that it executes: the same on each machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Tracer = Callable[[FrameType, str, Any], Any]


def lines_run(work: Callable[[], object]) -> int:
    """Returns how many lines of Python the call executes, with each turn of a loop or comprehension."""
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
