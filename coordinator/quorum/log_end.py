"""Where a log ends, as nodes of the quorum tell each other."""

from __future__ import annotations

from typing import NamedTuple


class LogEnd(NamedTuple):
    """Where a log or an epoch ends: the next offset, and the epoch of the record before it; 0 of an empty log."""

    offset: int
    epoch: int
