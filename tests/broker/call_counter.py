"""Counts the calls of functions in the event loop's thread: work is compared without measuring time."""

from __future__ import annotations

import sys


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
