"""Suites in Go: packages of modules from the Go module proxy, in the versions of go/go.mod."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.interop.processes import run
from tests.interop.suites.nodes import Nodes
from tests.interop.suites.outcomes import REASON_LENGTH, Outcome, Result
from tests.interop.suites.processes import Process

HERE = Path(__file__).parent / "go"
REASON_LINES = 4
LISTED = re.compile(r"^(Test|Example|Fuzz)\w*$")
REASON = re.compile(r"^\s*\w+_test\.go:\d+: |^\s*Error:\s|^panic: |^fatal error: |^SIGQUIT: ")
CLEANING = re.compile(r"NOT DELETING|deleting (topic|group)|unable to delete|completed in")
"""Lines that franz-go's tests log when they clean up."""
ENDS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}


class GoTests(NamedTuple):
    """The tests of some packages, as `go test` runs them."""

    modules: tuple[str, ...]
    packages: tuple[str, ...]
    environment: Callable[[Nodes], Mapping[str, str]]
    tests: str = "."
    """A pattern of the names of tests that use a broker."""
    tags: str = ""

    def versions(self) -> dict[str, str]:
        modules = run(["go", "-C", str(HERE), "list", "-m", *self.modules]).stdout.decode().splitlines()
        go = run(["go", "version"]).stdout.decode().split()[2]
        return {**dict(module.split() for module in modules), "go": go}

    def alone(self, name: str) -> str:
        return f"^{name.split('.', 1)[1].split('/')[0]}$"

    def run(self, nodes: Nodes, tests: str, process: Process) -> dict[str, Result]:
        def events_of(*arguments: str) -> list[str]:
            command = ["go", "-C", str(HERE), "test", "-vet=off", "-count=1", "-json", f"-tags={self.tags}", *arguments]
            return process.run([*command, *self.packages], self.environment(nodes))

        tests = tests or self.tests
        named = listed(events_of("-list", tests))
        return outcomes(events_of("-run", tests, "-timeout", f"{process.timeout_s:.0f}s"), named)


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
