"""Suppresses the log lines of simulated disks and kills."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Disables logging during a simulation, and enables it afterwards."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
