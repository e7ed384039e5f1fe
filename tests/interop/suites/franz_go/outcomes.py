"""Outcomes of tests, from the events of `go test -json`."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

REASON_LINES, REASON_LENGTH = 4, 300
LISTED = re.compile(r"^(Test|Example|Fuzz)\w*$")
REASON = re.compile(r"^\s*\w+_test\.go:\d+: |^panic: |^fatal error: |^SIGQUIT: ")
LINE_BREAK = re.compile(r"\n\s*")
CLEANING = re.compile(r"NOT DELETING|deleting (topic|group)|unable to delete|completed in")
"""Lines that franz-go's tests log when they clean up."""


class Outcome(enum.Enum):
    """The end of a test."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNFINISHED = "unfinished"
    """The process of the tests ended first: by a timeout, or by a panic of this or another test."""
    NOT_RUN = "not run"
    """The process of the tests ended before this test began."""


ENDS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}
FAILURES = frozenset({Outcome.FAILED, Outcome.UNFINISHED, Outcome.NOT_RUN})


class Result(NamedTuple):
    """One test, or one subtest."""

    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""
    """The test's own lines about a failure or a skip."""


class Event(NamedTuple):
    """A line of `go test -json`."""

    action: str
    package: str
    test: str
    """The test's name; empty if the event is the package's."""
    output: str
    seconds: float

    @property
    def name(self) -> str:
        """The name of the test in the results: the last part of its package's path, and its own name."""
        return f"{self.package.rsplit('/', 1)[-1]}.{self.test}"


def listed(lines: Iterable[str]) -> list[str]:
    """Returns the names of all tests, from the events of `go test -json -list .`."""
    named = [event._replace(test=event.output.strip()) for event in events(lines) if event.action == "output"]
    return [event.name for event in named if LISTED.match(event.test)]


def outcomes(lines: Iterable[str], listed: Iterable[str]) -> dict[str, Result]:
    """Returns the result of each test by name. `listed` are the names of all tests that should run."""
    results = {name: Result(Outcome.NOT_RUN) for name in listed}
    output: dict[str, list[str]] = {}
    for event in events(lines):
        if not event.test:
            continue
        match event.action:
            case "run":
                results[event.name] = Result(Outcome.UNFINISHED)
                output[event.name] = []
            case "output":
                output[event.name].append(event.output)
            case "pass" | "fail" | "skip":
                reason = "" if event.action == "pass" else _reason(output[event.name])
                results[event.name] = Result(ENDS[event.action], event.seconds, reason)
    for name, result in results.items():
        if result.outcome is Outcome.UNFINISHED:
            results[name] = result._replace(reason=_reason(output[name]))
    return results


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Yields the events. Lines of the build aren't JSON."""
    for line in lines:
        if line.startswith("{"):
            fields = json.loads(line)
            name = fields.get("Test", ""), fields.get("Output", ""), fields.get("Elapsed", 0.0)
            yield Event(fields["Action"], fields.get("Package", ""), *name)


def _reason(output: Iterable[str]) -> str:
    """Returns the last lines that a test logged, shortened. They show why the test failed."""
    lines = [line.strip()[:REASON_LENGTH] for line in output if REASON.match(line) and not CLEANING.search(line)]
    return "\n".join(lines[-REASON_LINES:])


def counts(results: Mapping[str, Result]) -> dict[str, int]:
    """Returns the number of tests with each outcome."""
    outcomes = [result.outcome for result in results.values()]
    return {outcome.value: outcomes.count(outcome) for outcome in Outcome}


def as_json(results: Mapping[str, Result]) -> dict[str, dict[str, str | float]]:
    """Returns the results as JSON, without empty fields."""
    fields = {name: {**result._asdict(), "outcome": result.outcome.value} for name, result in results.items()}
    return {name: {key: value for key, value in kept.items() if value} for name, kept in fields.items()}


def as_text(result: Mapping[str, object]) -> str:
    """Returns results as a JSON file, with each test on a line of its own."""
    text = json.dumps(result, indent=1)
    return (
        re.sub(r"\{\n\s+(\"outcome\"[^{}]*?)\n\s*\}", lambda match: f"{{{LINE_BREAK.sub(' ', match[1])}}}", text) + "\n"
    )


def top_level(names: Iterable[str]) -> list[str]:
    """Returns the tests of which these are subtests, in order, each once."""
    return list(dict.fromkeys(name.split("/")[0] for name in names))
