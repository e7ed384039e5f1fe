"""Tests that the shipped dashboards and alerts use metrics that the broker serves."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCKER = Path(__file__).resolve().parents[2] / "docker"
DOCS = (DOCKER.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
NAME = re.compile(r"\b(?:kafka|odradek|process)_[a-z0-9_]+")


def names_in(expressions: str) -> set[str]:
    """Returns the names of metric families; the count of a summary belongs to the summary."""
    return {name.removesuffix("_count") if "timems_count" in name else name for name in NAME.findall(expressions)}


def served() -> set[str]:
    return {name for name in re.findall(r"`([a-z0-9_]+)`", DOCS) if NAME.fullmatch(name)}


def test_every_expression_of_the_dashboard_asks_for_what_is_served() -> None:
    dashboard = json.loads((DOCKER / "monitoring" / "dashboards" / "odradek.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(expressions) > 30
    assert names_in("\n".join(expressions)) <= served()


def test_every_alert_asks_for_what_is_served() -> None:
    alerts = (DOCKER / "monitoring" / "alerts.yaml").read_text(encoding="utf-8")
    assert alerts.count("- alert: ") > 10
    assert names_in(alerts) <= served()


def test_the_file_of_every_volume_is_there() -> None:
    compose = (DOCKER / "compose.monitoring.yaml").read_text(encoding="utf-8")
    paths = re.findall(r"- \./(\S+?):", compose)
    assert len(paths) == 5
    assert all((DOCKER / path).exists() for path in paths)
