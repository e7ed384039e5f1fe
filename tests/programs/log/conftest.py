"""Keeps the tests' process alive: `odradek log` lets SIGPIPE end it if its output is a closed pipe, as other tools
do."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Restores Python's handling of SIGPIPE. With the command's setting, a later test that writes to a closed
    connection would end the process."""
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)
