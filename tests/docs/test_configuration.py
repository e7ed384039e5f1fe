"""Tests that docs/configuration.md matches the declarations of the options."""

from __future__ import annotations

from docs.configuration import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m docs.configuration`"
