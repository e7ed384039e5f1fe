"""The twenty acceptance tests of replication, by number: a fault of another system is planted, and is detected.

Without the fault the same courses of the world `cluster` violate nothing: as a world of seeds, `cluster_faults`.
docs/simulation.md describes each.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.simulation import metadata_world, test_isr, test_metadata
from tests.simulation.cluster.planted import PLANTED, ClusterCourse, Planted
from tests.simulation.virtual_time import run


def isr_world(seed: int) -> Collection[object]:
    return run(lambda: test_isr.simulate(seed))[0].breaches


def metadata(seed: int) -> Collection[object]:
    try:
        metadata_world.simulate(seed, test_metadata.STEPS)
    except AssertionError as error:
        return [error]
    return []


ELSEWHERE = (
    Planted(12, test_isr.a_change_that_may_have_been_made_is_taken_back, isr_world, 27, 100),
    Planted(20, test_metadata.committed_before_it_is_on_the_device, metadata, 0, 40),
    Planted(20, test_metadata.what_was_not_written_is_kept, metadata, 0, 40),
)
"""Faults in code that the world `cluster` doesn't use, or too rarely: 20 are KAFKA-10533 and KAFKA-17608."""

COURSES = {planted.world.course: planted.world for planted in PLANTED if isinstance(planted.world, ClusterCourse)}


def name_of(planted: Planted) -> str:
    return f"{planted.number}-{planted.plant.__name__}"


@pytest.mark.source_only
@pytest.mark.parametrize("planted", [*PLANTED, *ELSEWHERE], ids=name_of)
def test_a_fault_that_is_planted_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert any(planted.world(seed) for seed in (planted.seed, *range(planted.tries)))


def test_no_acceptance_test_is_missing() -> None:
    assert {planted.number for planted in (*PLANTED, *ELSEWHERE)} == {*range(1, 21)}


@pytest.mark.parametrize("seed", [0])
def test_what_does_harm_with_a_fault_does_none_without(seed: int) -> None:
    for name, course in COURSES.items():
        breaches = course.without_fault(seed)
        assert not breaches, f"{name.__name__}: {'; '.join(map(str, breaches))}"
