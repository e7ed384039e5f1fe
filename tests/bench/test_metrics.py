"""The cost of metrics, by pairs of rounds."""

from __future__ import annotations

import pytest

from bench.load import Load
from bench.loads import LOADS
from bench.metrics import LOADS as MEASURED
from bench.metrics import cost_of, costs
from bench.results import PeerResult, result_of

FIGURE = "cpu_s_per_gb"
SLOWING_DOWN = [{FIGURE: value} for value in (1.0, 2.0, 4.0, 8.0)]


def times(factor: float) -> list[dict[str, float]]:
    return [{FIGURE: sample[FIGURE] * factor} for sample in SLOWING_DOWN]


@pytest.mark.parametrize(("factor", "is_within"), [(1.009, True), (1.011, False), (0.98, True)])
def test_a_round_is_held_against_its_neighbour(factor: float, is_within: bool) -> None:
    cost = cost_of("produce", FIGURE, SLOWING_DOWN, times(factor))
    assert cost.ratio == pytest.approx(factor)
    assert cost.is_within is is_within


def test_one_round_that_went_wrong_is_not_the_cost() -> None:
    cost = cost_of("produce", FIGURE, SLOWING_DOWN, [*times(1.0)[:3], {FIGURE: 80.0}])
    assert cost.ratio == 1.0
    assert cost.high > 1.0


def test_one_round_says_nothing() -> None:
    with pytest.raises(ValueError, match="1 rounds say nothing"):
        cost_of("produce", FIGURE, SLOWING_DOWN[:1], SLOWING_DOWN[:1])


@pytest.mark.parametrize("load", [LOADS[name] for name in MEASURED])
def test_a_broker_that_failed_has_no_cost(load: Load) -> None:
    rows = {"odradek": PeerResult("", []), "odradek-metrics": PeerResult("", [], "it ended", True)}
    assert costs(result_of(load, rows, 1.0)) is None
