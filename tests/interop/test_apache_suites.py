"""Some classes of Apache Kafka's own JUnit suites; `make conformance` runs all. And the judgement of their outcomes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import wheel
from tests.interop.brokers import Odradek
from tests.interop.processes import ROOT
from tests.interop.suites.apache import outcomes
from tests.interop.suites.apache.outcomes import Expected, JUnitTest
from tests.interop.suites.apache.runs import Cluster, Runner, log_errors
from tests.interop.suites.apache.suites import SUITES, classes

pytestmark = pytest.mark.timeout(1_200)  # the first test may wait for Maven, which downloads the suites

SLICE = {
    "AdminFenceProducersTest": "clients",
    "DescribeProducersWithBrokerIdTest": "clients",
    "UserScramCredentialsCommandTest": "tools",
    "WordCountTest": "streams",
}
"""Classes by name, and their suites."""
PLAIN = "AdminFenceProducersTest"
"""The class that runs on processes of their own; the others run on forked ones."""

NOT_POINTABLE = Expected("not pointable", "needs Java", ("ATest.objects", "BTest"))
FAILING = Expected("failed", "a known fault", ("ATest.faults[2]",))


def cluster(peer: str, name: str) -> Cluster:
    packages = ROOT if not installed() else wheel.launcher().parent
    return Cluster(peer == "odradek", Odradek.program, None if name == PLAIN else packages)


def installed() -> bool:
    return Odradek.program == str(wheel.launcher())


@pytest.mark.parametrize("name", SLICE)
def test_a_class_of_apache_kafka_s_suites_passes(name: str, peer: str, tmp_path: Path) -> None:
    suite = next(suite for suite in SUITES if suite.name == SLICE[name])
    whole_name = next(whole for whole in classes(suite) if whole.endswith(f".{name}"))
    entries = outcomes.expected() if peer == "odradek" else []
    run = Runner(suite, cluster(peer, name), tmp_path).run(whole_name, entries)
    assert run.final
    assert outcomes.surprises(run.final, entries) == []
    assert run.log_errors == []


def test_the_classes_that_start_clusters_are_found() -> None:
    found = {suite.name: classes(suite) for suite in SUITES}
    assert "org.apache.kafka.tools.consumer.group.DescribeConsumerGroupTest" in found["tools"]
    assert "org.apache.kafka.tools.GetOffsetShellParsingTest" not in found["tools"]
    assert {name: len(names) for name, names in found.items()} == {"clients": 42, "tools": 27, "streams": 76}


def test_each_entry_of_the_expected_list_has_a_reason_and_names_no_test_twice() -> None:
    entries = outcomes.expected()
    names = [name for entry in entries for name in entry.tests]
    assert len(names) == len(set(names))
    assert all(entry.reason and entry.outcome in ("failed", "not pointable") for entry in entries)


def line(test: str, outcome: str, reason: str = "") -> str:
    return json.dumps({"test": test, "id": f"[{test}]", "outcome": outcome, "seconds": 1, "reason": reason})


def test_a_test_that_started_and_did_not_end_has_failed() -> None:
    found = outcomes.read([line("ATest.ends", "started"), line("ATest.ends", "passed"), line("ATest.hangs", "started")])
    assert found == {
        "ATest.ends": JUnitTest("passed", "", "[ATest.ends]"),
        "ATest.hangs": JUnitTest("failed", outcomes.UNFINISHED, "[ATest.hangs]"),
    }


def test_the_reason_is_the_first_line_of_the_stack() -> None:
    assert outcomes.read([line("ATest.fails", "failed", "\nError: no\n\tat x\n")])["ATest.fails"].reason == "Error: no"


def test_an_unexpected_failure_is_a_surprise() -> None:
    assert outcomes.surprises({"ATest.fails": JUnitTest("failed", "no")}, [NOT_POINTABLE]) == [
        "ATest.fails: failed: no",
        "ATest.objects: in expected.toml, but there is no such test",
    ]


@pytest.mark.parametrize("outcome", ["passed", "skipped"])
def test_another_outcome_than_the_expected_one_is_a_surprise(outcome: str) -> None:
    assert len(outcomes.surprises({"BTest.any[1]": JUnitTest(outcome)}, [NOT_POINTABLE])) == 1


def test_a_failure_is_not_pointable_if_its_entry_says_so() -> None:
    found = outcomes.classified("BTest.any[1]", JUnitTest("failed", "no such metric"), [NOT_POINTABLE])
    assert found == JUnitTest("not pointable", "needs Java")


def test_a_test_that_should_fail_but_is_not_pointable_is_a_surprise() -> None:
    assert len(outcomes.surprises({"ATest.faults[2]": JUnitTest("not pointable")}, [FAILING])) == 1


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_flaky_test_may_pass(outcome: str) -> None:
    assert outcomes.surprises({"ATest.faults[2]": JUnitTest(outcome)}, [FAILING._replace(flaky=True)]) == []


def test_an_entry_covers_an_invocation_a_method_or_a_class() -> None:
    tests = {
        "ATest.objects[1]": JUnitTest("not pointable"),
        "ATest.objects[2]": JUnitTest("not pointable"),
        "BTest.any": JUnitTest("not pointable"),
        "ATest.faults[1]": JUnitTest("passed"),
        "ATest.faults[2]": JUnitTest("failed"),
    }
    assert outcomes.surprises(tests, [NOT_POINTABLE, FAILING]) == []


def test_the_outcomes_are_counted() -> None:
    counts = outcomes.counts([JUnitTest("passed"), JUnitTest("passed"), JUnitTest("not pointable")])
    assert counts == {"passed": 2, "failed": 0, "skipped": 0, "not pointable": 1}


@pytest.mark.parametrize(("brokers", "count"), [(1, 0), (3, 1)])
def test_an_internal_topic_may_lack_brokers_in_a_cluster_of_one(brokers: int, count: int, tmp_path: Path) -> None:
    cluster = tmp_path / "000-ATest.any"
    cluster.mkdir()
    (cluster / "node-3000.properties").write_text("#now\nprocess.roles=controller\n")
    for node in range(brokers):
        (cluster / f"node-{node}.properties").write_text("node.id=0\nprocess.roles=broker\n")
    (cluster / "node-0.log").write_text('{"event": "internal topic not created", "level": "error"}\n')
    (tmp_path / "console.txt").write_text("Traceback")
    assert len(log_errors(tmp_path)) == count


def test_any_other_error_is_found_in_any_cluster(tmp_path: Path) -> None:
    cluster = tmp_path / "000-ATest.any"
    cluster.mkdir()
    (cluster / "node-0.properties").write_text("process.roles=broker,controller\n")
    (cluster / "node-0.log").write_text('{"event": "started", "level": "info"}\n{"event": "no", "level": "error"}\n')
    assert log_errors(tmp_path) == ['000-ATest.any/node-0.log: {"event": "no", "level": "error"}']
