"""Outcomes of the tests of clients' suites, and the tests that don't pass as expected."""

from __future__ import annotations

import enum
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop.processes import CACHE, ROOT

EXPECTED = Path(__file__).with_name("expected.toml")
REASON_LENGTH = 300
LINE_BREAK = re.compile(r"\n\s*")


class Outcome(enum.Enum):
    """The end of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNFINISHED = "unfinished"
    """The process of the tests ended first: by a timeout, or by a panic of this or another test."""
    NOT_RUN = "not run"
    """The process of the tests ended before this test began."""


FAILURES = frozenset({Outcome.FAILED, Outcome.UNFINISHED, Outcome.NOT_RUN})


class Result(NamedTuple):
    """One test, or one subtest."""

    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""
    """The test's own lines about a failure or a skip."""


class Expected(NamedTuple):
    """Tests that don't pass with any number of brokers, or with some."""

    reason: str
    tests: Sequence[str]
    """Names of tests, without the names of subtests."""
    brokers: Sequence[str] = ("odradek", "apache")
    nodes: Sequence[str] = ("1", "3", "mixed")
    flaky: bool = False
    """True if the tests sometimes pass."""
    not_pointable: bool = False
    """True if no broker of this harness could pass."""


def expected(suite: str, broker: str, nodes: str, path: Path = EXPECTED) -> list[Expected]:
    """Returns the entries of a suite that concern a run."""
    raw: list[dict[str, Any]] = tomllib.loads(path.read_text()).get(suite, [])
    entries = [Expected(**entry) for entry in raw]
    return [entry for entry in entries if broker in entry.brokers and nodes in entry.nodes]


def counts(results: Mapping[str, Result]) -> dict[str, int]:
    """Returns the number of tests with each outcome."""
    outcomes = [result.outcome for result in results.values()]
    return {outcome.value: outcomes.count(outcome) for outcome in Outcome}


def as_json(results: Mapping[str, Result]) -> dict[str, dict[str, str | float]]:
    """Returns the results as JSON, without empty fields."""
    fields = {name: {**result._asdict(), "outcome": result.outcome.value} for name, result in results.items()}
    return {name: {key: value for key, value in kept.items() if value} for name, kept in fields.items()}


def as_text(result: Mapping[str, object]) -> str:
    """Returns results as a JSON file, with each test on a line of its own. Paths begin at the root of the tree."""
    text = json.dumps(result, indent=1)
    for root in (ROOT, CACHE.resolve().parent):  # the cache may be shared with another tree
        text = text.replace(f"{root}/", "")
    return (
        re.sub(r"\{\n\s+(\"outcome\"[^{}]*?)\n\s*\}", lambda match: f"{{{LINE_BREAK.sub(' ', match[1])}}}", text) + "\n"
    )


def top_level(names: Iterable[str]) -> list[str]:
    """Returns the tests of which these are subtests, in order, each once."""
    return list(dict.fromkeys(name.split("/")[0] for name in names))


def failed_twice(result: Mapping[str, Any]) -> list[str]:
    """Returns the top-level tests that failed in the run, and again alone."""
    failed = [
        {name.split("/")[0] for name, test in result[part].items() if Outcome(test["outcome"]) in FAILURES}
        for part in ("tests", "again")
    ]
    return sorted(failed[0] & failed[1])


def surprises(result: Mapping[str, Any], entries: Iterable[Expected]) -> list[str]:
    """Returns a line for each test that failed twice without an entry, and for each test that has an entry and passed.

    An entry of a test that didn't run is no surprise.
    """
    entries = list(entries)
    failed = failed_twice(result)
    named = {name for entry in entries for name in entry.tests}
    always = {name for entry in entries if not entry.flaky for name in entry.tests}
    ran = set(top_level(result["tests"]))
    return [
        *(f"{name} failed, and failed again alone" for name in failed if name not in named),
        *(f"{name} passed; expected.toml says that it fails" for name in sorted(always & ran - set(failed))),
    ]


def regressions(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns the top-level tests that did not fail twice before, and do now. Tests of only one run don't count."""
    both = set(top_level(before["tests"])) & set(top_level(after["tests"]))
    return [name for name in failed_twice(after) if name in both and name not in failed_twice(before)]
