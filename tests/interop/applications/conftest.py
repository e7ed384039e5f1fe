"""Keeps the figures of the applications."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.interop.applications import figures
from tests.interop.applications.figures import Figures


@pytest.fixture
def keep() -> Callable[[Figures], None]:
    """Returns a function that writes a test's figures, with the time since the test began."""
    began = time.monotonic()
    return lambda found: figures.keep(found, time.monotonic() - began)
