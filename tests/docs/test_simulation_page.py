"""Tests that the entries in the table of the twenty replication acceptance tests exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "simulation.md").read_text()
ROW = re.compile(r"^\| (\d+) \| (.+) \| `(\w+)` \| .+ \|$", re.MULTILINE)
SIMULATION = "".join(file.read_text() for file in (ROOT / "tests" / "simulation").rglob("*.py"))


def test_all_twenty_have_a_fault_that_is_planted() -> None:
    rows = ROW.findall(PAGE)
    assert {int(number) for number, _, _ in rows} == set(range(1, 21))
    planted = set(re.findall(r"^def (\w+)\(", SIMULATION, re.MULTILINE))
    assert {fault for _, _, fault in rows} <= planted


def test_files_of_tests_that_it_names_are_there() -> None:
    for _, text, _ in ROW.findall(PAGE):
        for name in re.findall(r"`(test_\w+\.py)`", text):
            assert list((ROOT / "tests").rglob(name)), name
