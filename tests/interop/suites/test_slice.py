"""A few tests of a client's own suite, compared with the committed results, while Apache Kafka's classes read each
response; `make conformance` runs all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.either_node import Make
from tests.interop.suites.__main__ import RESULTS, Run, judge, measure
from tests.interop.suites.table import SUITES

SUITE, TESTS = "kafka-python", "test/integration/test_producer_integration.py"


@pytest.mark.timeout(600)
def test_no_committed_line_of_a_client_s_suite_turns_red(peer: str, tmp_path: Path) -> None:
    suite = next(suite for suite in SUITES if suite.name == SUITE)
    options = Run(suite, Make(peer), "1", tests=TESTS, decodes=True)
    before = json.loads((RESULTS / f"{options.name}.json").read_text())
    result = measure(options, tmp_path)
    assert set(result["tests"]) <= set(before["tests"])
    assert result["counts"]["passed"] > 10
    assert {"PRODUCE", "FETCH", "METADATA"} <= set(result["decoded"]["read"])
    assert judge(options, result, before) == []
