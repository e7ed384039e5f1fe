"""Checks traces of simulated quorums against the specification in `quorum_spec`, and the specification itself, by the
model checker TLC."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from coordinator.quorum.rules import Rules
from tests.simulation.quorum_trace import SPECIFICATION, TracedWorld, check, tlc, traced
from tests.simulation.test_quorum import CommitsEarlierEpochs, FetchesBeforeTheFlush, LeadsAgain


def worlds(*seeds: int, rules: Rules | None = None) -> list[TracedWorld]:
    found = [traced(seed, rules) if rules is not None else traced(seed) for seed in seeds]
    return [world for world in found if world is not None]


def test_what_nodes_do_is_what_the_specification_allows() -> None:
    verdict = check(worlds(5, 6))
    assert verdict.problem == ""
    assert verdict.events > 150


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        (FetchesBeforeTheFlush, r'role \|-> "Follower".*flushed \|-> 0,.*fetched \|-> {\[.*end \|-> <<1, 1>>'),
        (CommitsEarlierEpochs, r'epoch \|-> 4,.*role \|-> "Leader".*hwm \|-> 4'),
        (LeadsAgain, r'restarted \|-> TRUE.*role \|-> "Leader"'),
    ],
)
def test_a_fault_of_the_rules_is_not_allowed(rules: type[Rules], text: str) -> None:
    verdict = check(worlds(0, rules=rules()))
    assert re.search(rf"no actions explain event .*{text}", verdict.problem), verdict.problem


def test_an_epoch_that_nobody_has_begun_is_not_allowed() -> None:
    first, second = worlds(5, 9)
    second.recorder.events[0] = second.recorder.events[0].replace("epoch |-> 0", "epoch |-> 7")
    assert f"event {len(first.recorder.events) + 3}:" in check([first, second]).problem


@pytest.mark.parametrize(
    ("before", "after", "is_safe"),
    [("", "", True), ("voted[n] = request.from\n", "TRUE\n", False)],
    ids=["as it is", "votes twice"],
)
def test_the_specification_is_safe(tmp_path: Path, before: str, after: str, is_safe: bool) -> None:
    for file in SPECIFICATION.glob("Quorum.*"):
        shutil.copy(file, tmp_path)
    text = (tmp_path / "Quorum.tla").read_text()
    assert before in text
    (tmp_path / "Quorum.tla").write_text(text.replace(before, after))
    ended = tlc(tmp_path, "Quorum", "-deadlock", "-simulate", "num=500", "-depth", "80", "-seed", "1")
    assert re.search(r"\d+ states checked|The number of states generated", ended.stdout), ended.stdout + ended.stderr
    assert (re.search(r"Invariant \w+ is violated", ended.stdout) is None) == is_safe, ended.stdout
