"""Writes docs/conformance.md from the results of suites that others wrote: `python -m docs.conformance`.

`make conformance` writes the results into tests/interop/suites/results.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from docs import conformance_clients
from tests.interop.applications import figures
from tests.interop.suites.apache import outcomes
from tests.interop.suites.apache.outcomes import NOT_POINTABLE, OUTCOMES, PASSED, SKIPPED, JUnitTest

PAGE = Path(__file__).with_suffix(".md")
RESULTS = PAGE.parents[1] / "tests" / "interop" / "suites" / "results"
BROKERS = {"odradek": "Odradek", "apache": "Apache Kafka"}
NOT_RUN = "not run"
TITLES = {
    "failed": "## Failed",
    PASSED: "## Passed only alone\n\nThese failed once among the other tests of their class, and passed alone.",
    NOT_POINTABLE: "## Not applicable",
}
HEAD = """# Conformance

This page has the results of test suites that other projects wrote, on clusters of Odradek's processes, and on clusters
of Apache Kafka under the same harness. `make conformance SUITES="kafka-python sarama" NODES=3 BROKER=odradek` runs them
and writes the results; this page is generated from the results.
`python -m tests.interop.suites --help` names the suites.

Apache Kafka's own JUnit suites come from Maven Central, unchanged. Two classes of their runtime, which start brokers
inside the JVM, are replaced by classes that start `odradek` (`tests/interop/suites/apache`).
*Not applicable* are tests that can't run against the processes of any broker: they use Java objects inside the broker,
or configure Java classes that the broker loads. A test that fails runs once more, alone; the second outcome counts.
`tests/interop/suites/apache/expected.toml` lists the tests that don't pass: a run fails if any other test fails, or if
one of these passes that is not flaky.

| suite | broker | classes | passed | failed | skipped | not applicable | time | commit |
|---|---|--:|--:|--:|--:|--:|--:|---|
"""


APPLICATIONS_HEAD = """
## Applications

`make test-applications` runs programs of frameworks that use Kafka. Each reads a topic and writes another. The program
is killed (SIGKILL) after a part of the records, and the broker later; both start again on their data. No record may be
lost. Exactly once, no record may be doubled or out of order either: the reader is `read_committed`. Kafka Connect runs
with two workers, a file as source (exactly once) and a file as sink; a worker and the broker are killed. MirrorMaker 2
copies between Odradek and Apache Kafka, both ways, and is killed. Debezium copies the changes of a table of PostgreSQL;
Connect and the broker are killed. Celery's worker and its broker are killed, and rsyslog's broker
(`tests/interop/applications`). *Parts* are the records, lines or tasks that had to come, and all came; *again* is the
number that came a second time.

| application | output | guarantee | killed | parts | again | time | commit |
|---|---|---|---|--:|--:|--:|---|
"""


class Other(NamedTuple):
    """A test that did not pass with Odradek, or only alone."""

    test: str
    outcome: str
    reason: str
    apache: str
    """The outcome with Apache Kafka."""


def load() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


def others(result: dict[str, Any], name: str) -> dict[str, JUnitTest]:
    """Returns the tests of a class that did not pass at the first attempt, with their reasons in expected.toml."""
    entries = outcomes.expected() if result["broker"] == "odradek" else []
    raw = result["classes"][name]["others"]
    found = {test: JUnitTest(other.get("again", other["outcome"]), other["reason"]) for test, other in raw.items()}
    return {test: outcomes.classified(test, other, entries) for test, other in found.items()}


def row(result: dict[str, Any]) -> str:
    """Returns a suite's row in the table."""
    classes = result["classes"]
    counts = Counter(other.outcome for name in classes for other in others(result, name).values())
    counts[PASSED] = sum(found["counts"][PASSED] for found in classes.values())
    minutes = f"{sum(found['seconds'] for found in classes.values()) / 60:.0f} min"
    commits = ", ".join(sorted({f"`{found['commit'][:8]}`" for found in classes.values()}))
    title = f"{result['suite']} {result['version']}"
    counted = (str(counts[outcome]) for outcome in OUTCOMES)
    return f"| {' | '.join([title, BROKERS[result['broker']], str(len(classes)), *counted, minutes, commits])} |"


def not_passed(results: list[dict[str, Any]]) -> Iterator[Other]:
    """Yields the tests that did not pass at the first attempt with Odradek."""
    control = {result["suite"]: result for result in results if result["broker"] == "apache"}
    for result in results:
        if result["broker"] == "odradek":
            for name in result["classes"]:
                for test, other in others(result, name).items():
                    if other.outcome != SKIPPED:
                        apache = control_of(control.get(result["suite"]), name, test)
                        yield Other(test, other.outcome, other.reason, apache)


def control_of(result: dict[str, Any] | None, name: str, test: str) -> str:
    """Returns a test's outcome with Apache Kafka, if its class was run."""
    if result is None or name not in result["classes"]:
        return NOT_RUN
    return others(result, name).get(test, JUnitTest(PASSED)).outcome


def sections(listed: Iterable[Other]) -> Iterator[str]:
    """Yields a table per outcome: reasons, and the tests that have them."""
    ordered = sorted(
        listed, key=lambda other: (list(TITLES).index(other.outcome), other.reason, other.apache, other.test)
    )
    for outcome, of_outcome in groupby(ordered, key=lambda other: other.outcome):
        yield f"\n{TITLES[outcome]}\n\n| reason | tests | Apache Kafka |\n|---|---|---|\n"
        for (reason, apache), tests in groupby(of_outcome, key=lambda other: (other.reason, other.apache)):
            names = ", ".join(f"`{other.test}`" for other in tests)
            yield f"| {escaped(reason)} | {names} | {apache} |\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def applications() -> str:
    rows = ""
    for (name, output, guarantee, expected, received, killed), seconds, commit in figures.load():
        again = received - expected
        cells = [name, output, guarantee, killed, f"{expected:,}", f"{again:,}", f"{seconds} s", f"`{commit[:8]}`"]
        rows += f"| {' | '.join(cells)} |\n"
    return APPLICATIONS_HEAD + rows


def page() -> str:
    loaded = load()
    results = [result for result in loaded if "classes" in result]
    rows = "".join(f"{row(result)}\n" for result in results)
    return (
        HEAD
        + rows
        + "".join(sections(not_passed(results)))
        + conformance_clients.section(result for result in loaded if "tests" in result)
        + applications()
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
