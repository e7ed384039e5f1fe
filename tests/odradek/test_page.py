"""Tests docs/testing.md: the tests in its table exist, and so do the methods and fixtures that it lists."""

from __future__ import annotations

import ast
import re

from odradek import pytest_plugin
from odradek.testing import Broker
from tests.sources import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text()


def functions_of(name: str) -> set[str]:
    """Returns the test functions of the only test file with this name."""
    (file,) = (path for folder in ("tests/interop/testing", "examples") for path in (ROOT / folder).rglob(name))
    nodes = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_row_of_the_comparison_has_its_test() -> None:
    section = PAGE.partition("## Comparison")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")][2:]
    assert len(rows) > 10
    for row in rows:
        file, *more = re.findall(r"`(test_[\w.]+)(?:::(test_\w+))?`", row.rpartition("|")[0].rpartition("|")[2])
        names = {file[1], *(name for name, _ in more)}
        assert names <= functions_of(file[0]), row


def test_the_methods_that_are_listed_are_there() -> None:
    table = PAGE[PAGE.index("how clients reach it") - 200 : PAGE.index("`Cluster(3)` has")]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    names = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    assert len(names) > 25
    assert {name for name in names if not hasattr(Broker, name)} == set()


def test_the_fixtures_that_are_listed_are_there() -> None:
    listed = set(re.findall(r"^\| `(odradek_\w+)`", PAGE, re.MULTILINE))
    assert listed == {name for name in vars(pytest_plugin) if name.startswith("odradek_")}
