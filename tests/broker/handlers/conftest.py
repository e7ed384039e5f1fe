"""Fixtures for the tests of single APIs: a broker and a client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.broker.inprocess import Client, InProcess


@pytest.fixture
def options() -> dict[str, str]:
    """Returns the broker's options; a test module that needs others overrides this."""
    return {}


@pytest.fixture
async def broker(tmp_path: Path, options: dict[str, str]) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path / "data", options) as served:
        yield served


@pytest.fixture
def client(broker: InProcess) -> Client:
    return broker.client()
