"""Simulated disks and kills have much to say; none of it is news."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Nothing is logged during a simulation, and everything again after it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
