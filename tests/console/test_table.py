"""Tests that each cell of ours in the comparison of docs/console.md is shown by tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.sources import ROOT

SECTION = re.search(r"^## Compared.*?(?=^## )", (ROOT / "docs/console.md").read_text(), re.MULTILINE | re.DOTALL)
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (SECTION[0].splitlines() if SECTION else [])
    if line.startswith("| ") and not line.startswith("| |")
]


def test_the_table_has_rows() -> None:
    assert len(ROWS) > 10
    assert {len(row) for row in ROWS} == {9}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_cell_of_ours_has_tests(row: list[str]) -> None:
    named = re.findall(r"`(\w+\.py)::(\w+)`", row[-1])
    assert bool(named) == (row[1] != "–")
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests/console" / file).read_text()


def test_the_licence_is_apaches() -> None:
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()
