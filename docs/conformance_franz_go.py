"""The section about franz-go's tests in docs/conformance.md, from tests/interop/suites/franz_go/results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "tests" / "interop" / "suites" / "franz_go" / "results"
BROKERS = {"odradek": "Odradek", "apache": "Apache Kafka"}
COUNTED = ("passed", "failed", "unfinished", "not run", "skipped")
PASSED, SKIPPED = "passed", "skipped"
HEAD = """
## franz-go

`make test-franz-go` runs the tests of franz-go's packages `kgo` and `kadm` on clusters. With three brokers, topics
have three replicas, of which two must be in sync. In the runs with kills, a broker is killed (SIGKILL) every 20
seconds, or once the broker killed before it serves again, and is started again at once. *Unfinished* are tests that
ran when the time for all tests was over; *not run* are tests that had not begun. Each test that fails runs once more,
alone, without kills, unless the run was ended before. The machine had other load, so that times don't compare the
brokers.

| broker | brokers | kills | passed | failed | unfinished | not run | skipped | failed again | time | commit |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
"""
OTHERS = """
Tests that failed with a logged reason, and their outcomes on both clusters:

| run | test | Odradek | Apache Kafka | log of the test on Odradek |
|---|---|---|---|---|
"""

Results = dict[str, Any]


def load() -> list[Results]:
    """Returns the results. Results of the same run with Odradek and with Apache Kafka are neighbours."""
    results = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    return sorted(results, key=lambda result: (*run_of(result), result["broker"] != "odradek"))


def run_of(result: Results) -> tuple[int, float]:
    """Returns the options of a run that the two brokers share."""
    return result["nodes"], result["kill_every_s"]


def title(run: tuple[int, float]) -> str:
    nodes, kill_every_s = run
    return f"{nodes} brokers, {'kills' if kill_every_s else 'no kills'}" if nodes > 1 else "1 broker"


def row(result: Results) -> str:
    again = str(sum(is_bad(test) for test in result["again"].values()))
    if left := len(top_level(result["tests"], is_bad) - top_level(result["again"], lambda _: True)):
        again += f" ({left} not run again)"
    counts = (result["counts"][outcome] for outcome in COUNTED)
    commit = f"`{result['commit'][:8]}`"
    cells = [BROKERS[result["broker"]], result["nodes"], len(result["kills"]), *counts, again]
    return f"| {' | '.join(map(str, cells))} | {result['seconds']} s | {commit} |\n"


def is_bad(test: dict[str, Any]) -> bool:
    """True if a test did not pass."""
    return test["outcome"] not in (PASSED, SKIPPED)


def top_level(tests: dict[str, dict[str, Any]], counts: Callable[[dict[str, Any]], bool]) -> set[str]:
    """Returns the names of the top-level tests of which a test counts."""
    return {name.split("/")[0] for name, test in tests.items() if counts(test)}


def others(results: list[Results]) -> Iterator[str]:
    """Yields a row for each test that did not pass with a broker."""
    for run, of_run in groupby(results, key=run_of):
        tests = {result["broker"]: result["tests"] for result in of_run}
        for name in sorted({name for of_broker in tests.values() for name, test in of_broker.items() if failed(test)}):
            outcomes = [tests.get(broker, {}).get(name, {}).get("outcome", "not run") for broker in BROKERS]
            reason = tests.get("odradek", {}).get(name, {}).get("reason", "").rpartition("\n")[2]
            yield f"| {title(run)} | `{name}` | {' | '.join(outcomes)} | {escaped(reason)} |\n"


def failed(test: dict[str, Any]) -> bool:
    """True if a test ran and did not pass."""
    return test["outcome"] in ("failed", "unfinished") and test.get("reason", "") != ""


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def section() -> str:
    results = load()
    return HEAD + "".join(map(row, results)) + OTHERS + "".join(others(results))
