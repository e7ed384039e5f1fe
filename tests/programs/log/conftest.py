"""`odradek log` dies of a pipe that nobody reads, as tools do; the process of the tests does not."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Has SIGPIPE again as Python has it: left as the command sets it, it ended whatever later test wrote to a peer
    that was gone."""
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)
