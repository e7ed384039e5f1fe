"""Tests that no page is left out of the tests that open all pages in a browser, or of the pictures in the docs."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from starlette.routing import compile_path

from console import app
from tests.console.every_page import PAGES, is_page
from tests.sources import ROOT


@pytest.mark.parametrize("route", [route for route in app.PAGES if is_page(route)])
def test_a_page_has_a_row(route: str) -> None:
    pattern, _, _ = compile_path(route)
    assert [name for name, path in PAGES.items() if pattern.fullmatch(urlsplit(path).path)]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_picture(name: str) -> None:
    picture = f"console/console-{name}.png"
    assert f"({picture})" in (ROOT / "docs/console-pages.md").read_text()
    assert (ROOT / "docs" / picture).exists()
