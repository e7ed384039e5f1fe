"""The build of this process: compiled, or pure Python."""

from __future__ import annotations

from storage import log


def is_compiled() -> bool:
    """True if the hot path is compiled."""
    return not (log.__file__ or "").endswith(".py")
