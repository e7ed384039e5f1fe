"""Tests which tests `make quick` chooses, and that it ends in time."""

from __future__ import annotations

import time

import pytest

from tests.quick import Budget, chosen, pure_tests
from tests.sources import ROOT

pytest_plugins = ["pytester"]

TESTS = ["tests/storage/segment/test_index.py", "tests/storage/test_checkpoint.py", "tests/protocol/test_codec.py"]


def test_the_tests_of_a_changed_folder_come_before_those_that_import_it() -> None:
    tests = chosen(["storage/segment/index.py"], pure_tests())
    mirrored = [test for test in tests if test.startswith("tests/storage/segment/")]
    assert mirrored
    assert tests[: len(mirrored)] == mirrored


def test_a_changed_test_comes_first() -> None:
    assert chosen(["storage/log.py", "tests/protocol/test_codec.py"], TESTS)[0] == "tests/protocol/test_codec.py"


def test_a_test_with_processes_is_not_pure() -> None:
    assert not [test for test in chosen(["tests/interop/test_kill.py"], pure_tests()) if "interop" in test]


def test_nothing_changed_means_no_tests() -> None:
    assert chosen([], pure_tests()) == []


def test_the_pure_rooms_are_there() -> None:
    assert {test.split("/")[1] for test in pure_tests()} >= {"coordinator", "protocol", "storage"}
    assert all((ROOT / test).exists() for test in pure_tests())


@pytest.mark.parametrize(
    ("limit_s", "expected", "first"), [(3600.0, 2, "pass"), (0.0, 1, "pass"), (0.0, 1, "assert 0")]
)
def test_a_session_is_stopped_when_its_time_is_over(
    pytester: pytest.Pytester, limit_s: float, expected: int, first: str
) -> None:
    pytester.makepyfile(f"def test_first():\n    {first}\n\ndef test_second():\n    pass\n")
    budget = Budget(time.monotonic() + limit_s)
    result = pytester.runpytest_inprocess("-p", "no:odradek", "-p", "no:asyncio", plugins=[budget])
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) + outcomes.get("failed", 0) == expected
    assert budget.has_passed is (expected == 1 and first == "pass")
