"""The end of a log, as nodes of the quorum report it."""

from __future__ import annotations

from typing import NamedTuple


class LogEnd(NamedTuple):
    """The end of a log or an epoch: the next offset, and the epoch of the record before it; 0 for an empty log."""

    offset: int
    epoch: int
