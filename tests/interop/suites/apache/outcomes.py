"""Outcomes of tests: read from the lines that Outcomes.java writes, and judged by expected.toml."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

EXPECTED = Path(__file__).with_name("expected.toml")
PASSED, FAILED, SKIPPED, NOT_POINTABLE = OUTCOMES = ("passed", "failed", "skipped", "not pointable")
REPLACED = {FAILED: (FAILED,), NOT_POINTABLE: (NOT_POINTABLE, FAILED)}
"""Outcomes that an entry's outcome replaces. A test that finds no Java object of the broker may fail in its own way."""
UNFINISHED = "the process was killed during this test"
REASON_LENGTH = 400
INVOCATION = re.compile(r"(\[\d+\])+$")


class JUnitTest(NamedTuple):
    """One test, or one invocation of a test with several."""

    outcome: str
    reason: str = ""
    """The exception's first line, or the reason of the skip."""
    unique_id: str = ""
    """The name by which JUnit runs this test alone."""


class Expected(NamedTuple):
    """Tests that don't pass."""

    outcome: str
    reason: str
    tests: tuple[str, ...]
    """`Class`, `Class.method`, or `Class.method[invocation]`."""
    flaky: bool = False
    """True if the tests sometimes pass."""


def read(lines: Iterable[str]) -> dict[str, JUnitTest]:
    """Returns the tests by name. A test that started and didn't end has failed."""
    tests: dict[str, JUnitTest] = {}
    for line in lines:
        fields = json.loads(line)
        started = fields["outcome"] == "started"
        outcome, reason = (FAILED, UNFINISHED) if started else (fields["outcome"], fields["reason"])
        tests[fields["test"]] = JUnitTest(outcome, first_line(reason), fields["id"])
    return tests


def first_line(reason: str) -> str:
    return next((line.strip()[:REASON_LENGTH] for line in reason.splitlines() if line.strip()), "")


def expected(path: Path = EXPECTED) -> list[Expected]:
    entries = tomllib.loads(path.read_text())["expected"]
    return [Expected(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def expected_log_lines(brokers: int, path: Path = EXPECTED) -> tuple[str, ...]:
    """Returns texts of log lines of level error that tests cause on purpose in clusters of this number of brokers."""
    lines = tomllib.loads(path.read_text())["log_line"]
    return tuple(line["text"] for line in lines if line["brokers"] == brokers)


def covers(name: str, test: str) -> bool:
    """True if an entry's name is the test's, or its method's, or its class's."""
    return name in (test, INVOCATION.sub("", test), test.partition(".")[0])


def expectation(test: str, entries: Iterable[Expected]) -> Expected | None:
    """Returns the entry that covers a test."""
    return next((entry for entry in entries if any(covers(name, test) for name in entry.tests)), None)


def classified(test: str, found: JUnitTest, entries: Iterable[Expected]) -> JUnitTest:
    """Returns the outcome and the reason that an entry gives to a test that did not pass."""
    entry = expectation(test, entries)
    if entry is None or found.outcome not in REPLACED[entry.outcome]:
        return found
    return found._replace(outcome=entry.outcome, reason=entry.reason)


def is_expected(test: str, found: JUnitTest, entries: Iterable[Expected]) -> bool:
    """True if the test passed or was skipped, or if it ended as its entry says."""
    entry = expectation(test, entries)
    if entry is None or (entry.flaky and found.outcome == PASSED):
        return found.outcome in (PASSED, SKIPPED)
    return found.outcome in REPLACED[entry.outcome]


def surprises(tests: Mapping[str, JUnitTest], entries: Iterable[Expected]) -> list[str]:
    """Returns a line for each test that didn't end as expected, and for each entry that covers no test of a class that
    ran.
    """
    entries = list(entries)
    lines = [
        f"{name}: {test.outcome}: {test.reason or 'expected.toml says that it does not pass'}"
        for name, test in tests.items()
        if not is_expected(name, test, entries)
    ]
    ran = {name.partition(".")[0] for name in tests}
    names = [name for entry in entries for name in entry.tests if name.partition(".")[0] in ran]
    return lines + [
        f"{name}: in expected.toml, but there is no such test"
        for name in names
        if not any(covers(name, test) for test in tests)
    ]


def counts(tests: Iterable[JUnitTest]) -> dict[str, int]:
    found = [test.outcome for test in tests]
    return {outcome: found.count(outcome) for outcome in OUTCOMES}
