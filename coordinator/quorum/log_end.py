"""The end of a log, as nodes of the quorum report it."""

from __future__ import annotations

from typing import Final, NamedTuple

LAST_EPOCH: Final = (1 << 31) - 1
"""The last epoch that a record can have. No node begins an election in it."""


class LogEnd(NamedTuple):
    """The end of a log or an epoch: the next offset, and the epoch of the record before it; 0 for an empty log."""

    offset: int
    epoch: int
