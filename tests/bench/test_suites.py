"""Tests the suites that are measured over several workers."""

from __future__ import annotations

import ast

import pytest

from bench.suites import CONFTESTS, SUITE, WorkersCost


@pytest.mark.parametrize("text", [*CONFTESTS.values(), SUITE.format(tests=3)])
def test_each_file_of_a_suite_is_python(text: str) -> None:
    ast.parse(text)


def test_every_suite_has_the_address_of_its_broker() -> None:
    assert all("def bootstrap(" in text for text in CONFTESTS.values())


def test_a_suite_is_a_row_of_a_table() -> None:
    assert str(WorkersCost("odradek", 12.34, 1234.5)) == "| odradek | 12.3 s | 1,234 MB |"
