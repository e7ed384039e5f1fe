"""Tests that each bound in docs/limits.md is enforced by code, and that the tests of each row exist."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from docs.limits import QUOTED, Limit, bound, limits
from tests.test_docs import ROOT

LIMITS = list(limits())


@cache
def names_in(path: str) -> frozenset[str]:
    """Returns the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.what)
def test_a_limit_is_held_by_an_option_or_a_constant(limit: Limit) -> None:
    for source in limit.sources:
        assert bound(source).value is not None


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.what)
def test_a_limit_is_shown_by_tests_that_are_there(limit: Limit) -> None:
    tests = QUOTED.findall(limit.tests)
    assert tests, "no test shows it"
    for test in tests:
        path, _, name = test.partition("::")
        assert name.partition("[")[0] in names_in(path), test


def test_no_limit_is_told_twice() -> None:
    listed = [limit.what for limit in LIMITS]
    assert len(listed) == len(set(listed))


def test_a_bound_without_a_source_is_refused_by_name() -> None:
    with pytest.raises(LookupError, match=r"no\.such\.option"):
        bound("no.such.option")
