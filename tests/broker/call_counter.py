"""Counts the calls of functions in the event loop's thread, to compare work without measuring time."""

from __future__ import annotations

import sys
from asyncio import Handle
from types import FrameType
from typing import Final

CALLBACK: Final = Handle._run.__code__


class CallCounter:
    """Counts the calls of functions."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> CallCounter:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, _frame: object, event: str, _argument: object) -> None:
        self.calls += event == "call"


class LongestTurn:
    """Counts the calls of functions in each callback of the event loop; `calls` is the maximum of a callback."""

    def __init__(self) -> None:
        self.calls = 0
        self._turn = 0

    def __enter__(self) -> LongestTurn:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._turn = 0 if frame.f_code is CALLBACK else self._turn + 1
            self.calls = max(self.calls, self._turn)
