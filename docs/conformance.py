"""Writes docs/conformance.md from the results of suites that others wrote: `python -m docs.conformance`.

`make conformance` writes the results into tests/interop/suites/results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).with_suffix(".md")
RESULTS = PAGE.parents[1] / "tests" / "interop" / "suites" / "results"
BROKERS = {"odradek": "Odradek", "apache": "Apache Kafka"}
COUNTED = ("passed", "failed", "skipped", "not pointable")
PASSED, NOT_RUN = "passed", "not run"
HEAD = """# Conformance

Suites that others wrote, on clusters of Odradek's processes, and on clusters of Apache Kafka under the same harness.
`make conformance` runs them and writes the results; this page is generated from these.

Apache Kafka's own JUnit suites come from Maven Central, unchanged. Two classes of their runtime, which start brokers
inside the JVM, are replaced by classes that start `odradek` (`tests/interop/suites/apache`).
*Not pointable* are tests that can't be run on the processes of any broker: they use Java objects inside the broker, or
configure Java classes that the broker loads. A test that fails runs once more, alone; the second outcome counts.
`tests/interop/suites/apache/expected.toml` lists the tests that don't pass: a run fails if any other test fails, or if
one of these passes.

| suite | broker | classes | passed | failed | skipped | not pointable | time | commit |
|---|---|--:|--:|--:|--:|--:|--:|---|
"""


class Other(NamedTuple):
    """A test that did not pass, or only alone."""

    suite: str
    test: str
    outcome: str
    reason: str
    apache: str
    """The outcome with Apache Kafka."""


def load() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


def row(result: dict[str, Any]) -> str:
    """Returns a suite's row in the table."""
    classes = result["classes"].values()
    counts = (str(sum(found["counts"][outcome] for found in classes)) for outcome in COUNTED)
    minutes = f"{sum(found['seconds'] for found in classes) / 60:.0f} min"
    commits = ", ".join(sorted({f"`{found['commit'][:8]}`" for found in classes}))
    name = f"{result['suite']} {result['version']}"
    return f"| {' | '.join([name, BROKERS[result['broker']], str(len(classes)), *counts, minutes, commits])} |"


def others(results: list[dict[str, Any]]) -> Iterator[Other]:
    """Yields the tests that did not pass with Odradek."""
    apache = {result["suite"]: result["classes"] for result in results if result["broker"] == "apache"}
    for result in results:
        if result["broker"] == "odradek":
            control = apache.get(result["suite"], {})
            for name, found in result["classes"].items():
                for test, other in found["others"].items():
                    if other["outcome"] != "skipped":
                        yield Other(result["suite"], test, **other, apache=control_of(control.get(name), test))


def control_of(found: dict[str, Any] | None, test: str) -> str:
    """Returns a test's outcome with Apache Kafka, from the results of its class."""
    if found is None:
        return NOT_RUN
    return str(found["others"].get(test, {"outcome": PASSED})["outcome"])


def sections(listed: Iterable[Other]) -> Iterator[str]:
    """Yields a table per outcome: reasons, and the tests that have them."""
    titles = {
        "failed": "## Failed",
        PASSED: "## Passed only alone\n\nThese failed once among the other tests of their class, and passed alone.",
        "not pointable": "## Not pointable",
    }
    by_outcome = sorted(listed, key=lambda other: (list(titles).index(other.outcome), other.reason, other.test))
    for outcome, of_outcome in groupby(by_outcome, key=lambda other: other.outcome):
        yield f"\n{titles[outcome]}\n\n| reason | tests | Apache Kafka |\n|---|---|---|\n"
        for (reason, apache), tests in groupby(of_outcome, key=lambda other: (other.reason, other.apache)):
            names = ", ".join(f"`{other.test}`" for other in tests)
            yield f"| {escaped(reason)} | {names} | {apache} |\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def page(results: list[dict[str, Any]]) -> str:
    rows = "".join(f"{row(result)}\n" for result in results)
    return HEAD + rows + "".join(sections(others(results)))


if __name__ == "__main__":
    PAGE.write_text(page(load()), encoding="utf-8")
