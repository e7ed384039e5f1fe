"""Tests that the broker serves the metrics that dashboards and alerts use: the shipped ones, and those in
`dashboards.txt`.

`make test-metrics` checks the results of their expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.metrics.exposition import FamilyKind
from broker.metrics.scrape import Breaks
from tests.broker.inprocess import InProcess
from tests.broker.metrics.scraping import OPTIONS

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "docker" / "monitoring"
NAME = re.compile(r"\b(?:kafka|odradek|process)_[a-z_]+")


def shipped() -> set[str]:
    """Returns the names in the shipped dashboard and alerts."""
    dashboard = json.loads((MONITORING / "dashboards" / "odradek.json").read_text(encoding="utf-8"))
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    texts = [*targets, (MONITORING / "alerts.yaml").read_text(encoding="utf-8")]
    return {name for text in texts for name in NAME.findall(text)}


def listed() -> Iterator[str]:
    for line in Path(__file__).with_name("dashboards.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


@pytest.fixture
async def served(tmp_path: Path) -> set[str]:
    """Returns the names that a broker serves if it has data for all of them."""
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("t")
        assert broker.server.metrics is not None
        families = [family async for family in broker.server.metrics.families(Breaks(SystemClock()))]
    counts = {f"{family.name}_count" for family in families if family.kind is FamilyKind.SUMMARY}
    return {family.name for family in families} | counts


async def test_what_is_shipped_asks_for_what_is_served(served: set[str]) -> None:
    assert len(shipped()) > 30
    assert shipped() - served == set()


async def test_what_others_have_drawn_asks_for_what_is_served(served: set[str]) -> None:
    assert len(set(listed())) > 50
    assert set(listed()) - served == set()
