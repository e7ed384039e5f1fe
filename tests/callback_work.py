"""Counts the work of each callback of the event loop in lines of Python: while a callback runs, no other client is
served."""

from __future__ import annotations

import sys
from asyncio.events import Handle
from types import FrameType
from typing import Any

from tests.counted_work import Tracer

CALLBACK = Handle._run.__code__


class CallbackWork:
    """Counts the lines that callbacks execute in the loop's thread, with each turn of a loop or comprehension."""

    def __init__(self) -> None:
        self.longest = 0
        """The lines of the longest callback."""
        self._lines = 0
        self._before: Any = None

    def __enter__(self) -> CallbackWork:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Tracer:
        if event == "call" and frame.f_code is CALLBACK:
            self._lines = 0
        elif event == "line":
            self._lines += 1
            self.longest = max(self.longest, self._lines)
        return self._trace
