"""Outcomes of tests, as the programs of suites report them, and their judgement."""

from __future__ import annotations

import json
import re
import tomllib
from xml.etree import ElementTree

from tests.interop.processes import ROOT
from tests.interop.suites import node_tests, outcomes, python_tests, table
from tests.interop.suites.go_tests import listed
from tests.interop.suites.go_tests import outcomes as go_outcomes
from tests.interop.suites.outcomes import Expected, Outcome, Result, as_json, as_text, counts, top_level

KGO = "example.com/pkg/kgo"


def event(action: str, test: str = "", **fields: str | float) -> str:
    named = {"Test": test} if test else {}
    return json.dumps({"Action": action, "Package": KGO, **named, **fields})


def test_each_test_has_its_own_end() -> None:
    lines = [
        "go: downloading a module",
        event("run", "TestA"),
        event("run", "TestA/one"),
        event("output", "TestA/one", Output="    a_test.go:12: saw double offset\n"),
        event("fail", "TestA/one", Elapsed=1.5),
        event("fail", "TestA", Elapsed=2.0),
        event("run", "TestB"),
        event("pass", "TestB", Elapsed=0.5),
        event("run", "TestC"),
        event("output", "TestC", Output="    c_test.go:3: the broker lacks it\n"),
        event("skip", "TestC", Elapsed=0.0),
    ]
    assert go_outcomes(lines, ["kgo.TestA", "kgo.TestB", "kgo.TestC"]) == {
        "kgo.TestA": Result(Outcome.FAILED, 2.0),
        "kgo.TestA/one": Result(Outcome.FAILED, 1.5, "a_test.go:12: saw double offset"),
        "kgo.TestB": Result(Outcome.PASSED, 0.5),
        "kgo.TestC": Result(Outcome.SKIPPED, 0.0, "c_test.go:3: the broker lacks it"),
    }


def test_a_panic_leaves_tests_unfinished_and_others_not_run() -> None:
    lines = [
        event("run", "TestA"),
        event("output", "TestA", Output="panic: test timed out after 5m0s\n"),
        event("output", Output="FAIL\n"),
        event("fail", Elapsed=300.0),
    ]
    results = go_outcomes(lines, ["kgo.TestA", "kgo.TestB"])
    assert results["kgo.TestA"] == Result(Outcome.UNFINISHED, reason="panic: test timed out after 5m0s")
    assert results["kgo.TestB"] == Result(Outcome.NOT_RUN)
    assert counts(results) == {"passed": 0, "failed": 0, "skipped": 0, "unfinished": 1, "not run": 1}


def test_lines_about_cleaning_up_are_no_reason() -> None:
    lines = [
        event("run", "TestA"),
        event("output", "TestA", Output="    a_test.go:7: lost a record\n"),
        event("output", "TestA", Output="    h_test.go:9: FAILED TESTING -- NOT DELETING TOPIC t\n"),
        event("fail", "TestA", Elapsed=1.0),
    ]
    assert go_outcomes(lines, [])["kgo.TestA"].reason == "a_test.go:7: lost a record"


def test_a_list_has_tests_but_no_benchmarks() -> None:
    lines = [event("output", Output=f"{line}\n") for line in ("TestA", "FuzzB", "BenchmarkC", "ok  \tpkg\t0.1s")]
    assert listed(lines) == ["kgo.TestA", "kgo.FuzzB"]
    assert top_level(["kgo.TestA/one", "kgo.TestA", "kgo.TestB"]) == ["kgo.TestA", "kgo.TestB"]


PASSED, FAILED = Result(Outcome.PASSED), Result(Outcome.FAILED)


def result(tests: dict[str, Result], again: dict[str, Result]) -> dict[str, object]:
    return {"tests": as_json(tests), "again": as_json(again)}


ONCE = result({"kgo.TestA/one": FAILED, "kgo.TestB": PASSED}, {"kgo.TestA": PASSED})
TWICE = result({"kgo.TestA/one": FAILED, "kgo.TestB": PASSED}, {"kgo.TestA": FAILED})


def test_a_failure_counts_if_it_is_repeated() -> None:
    assert outcomes.surprises(ONCE, []) == []
    assert outcomes.surprises(TWICE, []) == ["kgo.TestA failed, and failed again alone"]


def test_an_expected_failure_is_no_surprise_but_its_success_is() -> None:
    entry = Expected("a known fault", ("kgo.TestA",))
    assert outcomes.surprises(TWICE, [entry]) == []
    assert len(outcomes.surprises(ONCE, [entry])) == 1
    assert outcomes.surprises(ONCE, [entry._replace(flaky=True)]) == []


def test_a_line_that_was_green_and_turns_red_is_a_regression() -> None:
    assert outcomes.regressions(ONCE, TWICE) == ["kgo.TestA"]
    assert outcomes.regressions(TWICE, TWICE) == []
    assert outcomes.regressions(TWICE, ONCE) == []


def test_a_test_that_one_run_left_out_is_no_regression() -> None:
    assert outcomes.regressions(result({"kgo.TestB": PASSED}, {}), TWICE) == []


def test_the_list_of_expected_failures_has_reasons_and_names_suites() -> None:
    for suite in table.SUITES:
        assert all(entry.reason and entry.tests for entry in outcomes.expected(suite.name, "odradek", "3"))
    assert set(tomllib.loads(outcomes.EXPECTED.read_text())) <= {suite.name for suite in table.SUITES}


def test_pytest_s_report_has_failures_of_the_clean_up() -> None:
    case = '<testcase classname="test.integration.test_a{}" name="{}" time="{}">{}</testcase>'
    cases = [
        case.format("", "test_one[x.y]", 1.5, ""),
        case.format("", "test_two", 0.5, ""),
        case.format("", "test_two", 0.1, '<error message="left&#10;more"/>'),
        case.format(".TestB", "test_three", 0, '<skipped message="old"/>'),
    ]
    report = ElementTree.fromstring(f"<testsuite>{''.join(cases)}</testsuite>")
    assert python_tests.reported(report, "test/integration") == {
        "test_a.py::test_one[x.y]": Result(Outcome.PASSED, 1.5),
        "test_a.py::test_two": Result(Outcome.FAILED, 0.1, "left"),
        "test_a.py::TestB::test_three": Result(Outcome.SKIPPED, 0.0, "old"),
    }


def test_a_failed_hook_of_mocha_is_a_failure_of_its_test() -> None:
    report = {
        "passes": [{"fullTitle": "Producer sends", "duration": 1500, "err": {}}],
        "failures": [
            {
                "fullTitle": 'Consumer "before each" hook for "reads"',
                "duration": 0,
                "err": {"message": "no broker\nat x"},
            }
        ],
    }
    assert node_tests.reported(report, ["Producer sends", "Consumer reads"]) == {
        "Producer sends": Result(Outcome.PASSED, 1.5),
        "Consumer reads": Result(Outcome.FAILED, 0.0, "no broker"),
    }


def test_a_slash_in_a_title_of_mocha_begins_no_subtest() -> None:
    title = "Consumer/Producer reads"
    name = node_tests.named(title)
    assert top_level([name]) == [name]
    suite = next(suite for suite in table.SUITES if suite.name == "node-rdkafka")
    assert re.fullmatch(suite.kind.alone(name), title)


def test_librdkafka_s_tests_without_brokers_are_left_out() -> None:
    source = """
struct test tests[] = {
    _TEST(0001_multiobj, 0),
    _TEST(0004_conf, TEST_F_LOCAL),
    _TEST(0011_produce_batch,
          0,
          _THRES(.ucpu = 40.0)),
    _TEST(8000_idle, TEST_F_MANUAL),
    {NULL}};
"""
    assert node_tests.needing_broker(source) == ["0001_multiobj", "0011_produce_batch"]


def test_the_first_failure_of_librdkafka_s_test_is_its_reason() -> None:
    lines = [
        "%3|rdkafka| a line",
        '\x1b[31m### Test "0081_admin (do_test_DeleteGroups:12)" failed at 0081.c:3420:delete() at Tue: ###',
        "Expected the group to be deleted",
        '### Test "<MAIN>" failed at test.c:1950:test_wait_exit() at Tue: ###',
        "1 threads remain",
    ]
    assert node_tests.reason_of(lines) == (
        '### Test "0081_admin (do_test_DeleteGroups:12)" failed at 0081.c:3420:delete() at Tue: ### '
        "Expected the group to be deleted"
    )
    assert node_tests.reason_of(["all passed"]) == ""


def test_a_file_of_results_has_no_path_of_this_machine() -> None:
    text = as_text({"tests": {"a": {"outcome": "failed", "reason": f"no file {ROOT}/.cache/a.properties"}}})
    assert "no file .cache/a.properties" in text
