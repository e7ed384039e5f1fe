"""Tests what the site is made of, without the program that builds it."""

from __future__ import annotations

from pathlib import Path

from release import site
from tests.sources import ROOT


def pages_of(part: object) -> list[str]:
    if isinstance(part, dict):
        return [page for value in part.values() for page in pages_of(value)]
    if isinstance(part, list):
        return [page for entry in part for page in pages_of(entry)]
    return [str(part)]


def test_the_navigation_has_every_page_once(tmp_path: Path) -> None:
    site.gather(tmp_path)
    pages = pages_of(site.navigation((tmp_path / "index.md").read_text()))
    assert sorted(pages) == sorted(path.name for path in tmp_path.glob("*.md"))


def test_a_link_leads_to_a_page_of_the_site_or_nowhere(tmp_path: Path) -> None:
    text = "[log](../CHANGELOG.md#x) [cluster](cluster.md) [units](../systemd) [web](https://a.example) [here](#there)"
    assert site.moved(text, ROOT / "docs", tmp_path) == (
        "[log](changelog.md#x) [cluster](cluster.md) units [web](https://a.example) [here](#there)"
    )


def test_a_picture_is_copied(tmp_path: Path) -> None:
    assert site.moved("![cost](../bench/results/costs.png)", ROOT / "docs", tmp_path) == "![cost](costs.png)"
    assert (tmp_path / "costs.png").exists()
