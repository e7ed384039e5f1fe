"""docs/configuration.md is what the declarations make of it."""

from __future__ import annotations

from docs.configuration import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m docs.configuration`"
