"""The section about clients' own suites in docs/conformance.md, from tests/interop/suites/results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from bench.jars import APACHE_KAFKA
from tests.interop.suites import outcomes, table
from tests.interop.suites.outcomes import FAILURES, Outcome

BROKERS = {"odradek": "Odradek", "apache": "Apache Kafka"}
CLUSTERS = {"1": "1", "3": "3", "mixed": "2 and 1 of Apache Kafka"}
HEAD = """
## Suites of clients

Each suite runs on a new cluster of one broker, of three, or of two brokers of Odradek and one of Apache Kafka. With
three brokers, topics have three replicas by default. In the runs with kills, a broker is killed (SIGKILL) every 20
seconds, or once the broker killed before it serves again, and is started again at once. A test that fails runs once
more, alone and without kills; *alone* counts tests that passed then. *Failed* are the others, with tests that a time
limit ended. *Not applicable* are tests that no broker of this harness could pass.
`tests/interop/suites/expected.toml` lists the tests that don't pass: a run fails if any other test fails twice, or if
one of these passes. The machine had other load, so that times don't compare the brokers.

| suite | version | brokers | kills | broker | passed | alone | failed | not applicable | skipped | time | commit |
|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|---|
"""
OTHERS = """
Tests that did not pass, with the reason, and the clusters on which they did not:

| suite | tests | clusters | Odradek | Apache Kafka | reason |
|---|---|---|---|---|---|
"""
DECODED = f"""
## Every response decoded

With `DECODE=1`, clients connect to a proxy in front of each broker. It reads every response with the classes of Apache
Kafka {APACHE_KAFKA}, writes it again, and compares the bytes; it checks each batch of records and the order of answers
(`tests/interop/jvm/Decoder.java`). *Versions* counts the pairs of an API and a version, and *not read* the responses of
versions that Apache Kafka no longer has. A *defect* is a response that is malformed, has other bytes than Apache Kafka
writes, has a damaged batch, comes out of order, or is the error UNKNOWN_SERVER_ERROR. A run with a defect fails.

| suite | brokers | broker | passed | alone | failed | responses | APIs | versions | not read | defects | commit |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|
"""
NO_TESTS = """
The packages of aiokafka, kafkajs, @platformatic/kafka and confluent-kafka at PyPI and npm have no tests with a broker;
@confluentinc/kafka-javascript has none of its own, but librdkafka's. The project's own tests use these clients
(`tests/interop/test_client_matrix.py`).
"""
NOT_RUN = "not run"
ALONE, FAILED, NOT_POINTABLE = "alone", "failed", "not applicable"

Results = dict[str, Any]
RunKey = tuple[str, str, float]


class Line(NamedTuple):
    """A test that did not pass with a broker, on one cluster."""

    suite: str
    reason: str
    odradek: str
    apache: str
    clusters: str
    test: str


def run_of(result: Results) -> RunKey:
    """Returns the suite and the options of a run that the two brokers share."""
    return result["name"], result["nodes"], result["kill_every_s"]


def ended(result: Results) -> dict[str, tuple[str, str]]:
    """Returns the final outcome and the reason of each test that did not pass, or passed only alone."""
    suite, nodes, _ = run_of(result)
    entries = {
        test: entry
        for entry in outcomes.expected(suite, result["broker"], nodes)
        for test in entry.tests
    }  # fmt: skip
    failed = set(outcomes.failed_twice(result))
    found: dict[str, tuple[str, str]] = {}
    for name, test in result["tests"].items():
        top = name.split("/")[0]
        if Outcome(test["outcome"]) not in FAILURES:
            continue
        is_over = top in failed or not any(again.split("/")[0] == top for again in result["again"])
        entry = entries.get(top) if is_over else None
        outcome = (NOT_POINTABLE if entry and entry.not_pointable else FAILED) if is_over else ALONE
        found[name] = outcome, entry.reason if entry else test.get("reason", "").rpartition("\n")[2]
    return found


def final_counts(result: Results) -> Counter[str]:
    """Returns the number of tests with each outcome of `ended`."""
    return Counter(outcome for outcome, _ in ended(result).values())


def title(suite: str) -> str:
    return next((row.title for row in table.SUITES if row.name == suite), suite)


def row(result: Results) -> str:
    suite, nodes, _ = run_of(result)
    counts = final_counts(result)
    version = next(iter(result["suite"].values()))
    cells = [title(suite), version, CLUSTERS[nodes], len(result["kills"]), BROKERS[result["broker"]]]
    cells += [result["counts"]["passed"], counts[ALONE], counts[FAILED], counts[NOT_POINTABLE]]
    cells += [result["counts"]["skipped"], f"{result['seconds']} s", f"`{result['commit'][:8]}`"]
    return f"| {' | '.join(map(str, cells))} |\n"


def decoded_row(result: Results) -> str:
    """Returns the row of a run whose responses were decoded."""
    suite, nodes, _ = run_of(result)
    counts = final_counts(result)
    read, not_read = result["decoded"]["read"], result["decoded"]["not_read"]
    cells = [title(suite), CLUSTERS[nodes], BROKERS[result["broker"]], result["counts"]["passed"]]
    cells += [counts[ALONE], counts[FAILED], f"{responses(read):,}", len(read), sum(map(len, read.values()))]
    cells += [f"{responses(not_read):,}", len(result["decoded"]["defects"]), f"`{result['commit'][:8]}`"]
    return f"| {' | '.join(map(str, cells))} |\n"


def responses(counts: Mapping[str, Mapping[str, int]]) -> int:
    """Returns the number of responses of all APIs and versions."""
    return sum(sum(versions.values()) for versions in counts.values())


def lines(results: Iterable[Results]) -> Iterator[Line]:
    """Yields a line for each top-level test that did not pass with a broker."""
    for (suite, nodes, kill_every_s), of_run in groupby(results, key=run_of):
        runs = {result["broker"]: result for result in of_run}
        bad = {broker: ended(result) for broker, result in runs.items()}
        for test in sorted({test.split("/")[0] for found in bad.values() for test in found}):
            found = [
                (NOT_RUN, "") if broker not in runs else worst(bad[broker], test) for broker in BROKERS
            ]  # fmt: skip
            reason = next((reason for _, reason in found if reason), "")
            clusters = f"{CLUSTERS[nodes]}{', kills' if kill_every_s else ''}"
            yield Line(suite, reason, found[0][0], found[1][0], clusters, test)


def worst(found: dict[str, tuple[str, str]], test: str) -> tuple[str, str]:
    """Returns the outcome of a test, or of its subtest that ended worst, with a reason."""
    of_test = [end for name, end in found.items() if name.split("/")[0] == test]
    return max(of_test, key=lambda end: ((ALONE, NOT_POINTABLE, FAILED).index(end[0]), end[1]), default=("passed", ""))


def others(results: Iterable[Results]) -> Iterator[str]:
    """Yields a row for the tests of a suite that have the same reason and outcomes."""
    for key, of_key in groupby(sorted(lines(results)), key=lambda line: line[:4]):
        found = list(of_key)
        suite, reason, odradek, apache = key
        tests = ", ".join(f"`{test}`" for test in dict.fromkeys(line.test for line in found))
        clusters = "; ".join(dict.fromkeys(line.clusters for line in found))
        yield f"| {suite} | {tests} | {clusters} | {odradek} | {apache} | {escaped(reason)} |\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def section(results: Iterable[Results]) -> str:
    ordered = sorted(results, key=lambda result: (run_of(result), result["broker"] != "odradek"))
    plain = [result for result in ordered if "decoded" not in result]
    decoded = [result for result in ordered if "decoded" in result]
    return "".join(
        [HEAD, *map(row, plain), OTHERS, *others(plain), NO_TESTS, DECODED, *map(decoded_row, decoded)],
    )
