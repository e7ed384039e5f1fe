"""Outcomes of tests, read from events as `go test -json` writes them."""

from __future__ import annotations

import json

from tests.interop.suites.franz_go.__main__ import failures
from tests.interop.suites.franz_go.outcomes import Outcome, Result, as_json, counts, listed, outcomes, top_level

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
    assert outcomes(lines, ["kgo.TestA", "kgo.TestB", "kgo.TestC"]) == {
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
    results = outcomes(lines, ["kgo.TestA", "kgo.TestB"])
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
    assert outcomes(lines, [])["kgo.TestA"].reason == "a_test.go:7: lost a record"


def test_a_list_has_tests_but_no_benchmarks() -> None:
    lines = [event("output", Output=f"{line}\n") for line in ("TestA", "FuzzB", "BenchmarkC", "ok  \tpkg\t0.1s")]
    assert listed(lines) == ["kgo.TestA", "kgo.FuzzB"]
    assert top_level(["kgo.TestA/one", "kgo.TestA", "kgo.TestB"]) == ["kgo.TestA", "kgo.TestB"]


def test_a_failure_counts_if_it_is_repeated_and_the_control_does_not_have_it() -> None:
    passed, failed = Result(Outcome.PASSED), Result(Outcome.FAILED)

    def result(tests: dict[str, Result], again: dict[str, Result]) -> dict[str, object]:
        return {"tests": as_json(tests), "again": as_json(again)}

    once = result({"kgo.TestA/one": failed}, {"kgo.TestA": passed})
    twice = result({"kgo.TestA/one": failed, "kgo.TestB": passed}, {"kgo.TestA": failed})
    assert failures(once, None) == []
    assert failures(twice, None) == ["kgo.TestA"]
    assert failures(twice, once) == ["kgo.TestA"]
    assert failures(twice, twice) == []
