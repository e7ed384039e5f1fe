"""Tests the cost of metrics, which is measured by pairs of rounds."""

from __future__ import annotations

import pytest

from bench.load import Load
from bench.loads import LOADS
from bench.metrics import LOADS as MEASURED
from bench.metrics import cost_of, costs, interval
from bench.results import PeerResult, result_of

FIGURE = "cpu_s_per_gb"
SLOWING_DOWN = [{FIGURE: value} for value in (1.0, 2.0, 4.0, 8.0)]


def times(factor: float) -> list[dict[str, float]]:
    return [{FIGURE: sample[FIGURE] * factor} for sample in SLOWING_DOWN]


@pytest.mark.parametrize(("factor", "verdict"), [(1.009, "within 1 %"), (1.011, "above 1 %"), (0.98, "within 1 %")])
def test_a_round_is_held_against_its_neighbour(factor: float, verdict: str) -> None:
    cost = cost_of("produce", FIGURE, SLOWING_DOWN, times(factor))
    assert cost.ratio == pytest.approx(factor)
    assert str(cost).endswith(f": {verdict}")
    assert cost.is_above is (verdict == "above 1 %")


def test_rounds_that_differ_too_much_say_that_they_cannot_tell() -> None:
    cost = cost_of("produce", FIGURE, SLOWING_DOWN, [*times(0.9)[:2], *times(1.2)[2:]])
    assert str(cost).endswith("these rounds can't distinguish it from 1 %")
    assert not cost.is_above


@pytest.mark.parametrize(("count", "ends"), [(4, (0, 3)), (25, (7, 17)), (100, (40, 59))])
def test_the_median_is_between_two_of_the_values(count: int, ends: tuple[int, int]) -> None:
    assert interval([float(count - 1 - value) for value in range(count)]) == ends


def test_one_round_that_went_wrong_is_not_the_cost() -> None:
    cost = cost_of("produce", FIGURE, SLOWING_DOWN, [*times(1.0)[:3], {FIGURE: 80.0}])
    assert cost.ratio == 1.0
    assert cost.high > 1.0


def test_one_round_says_nothing() -> None:
    with pytest.raises(ValueError, match="1 rounds are too few"):
        cost_of("produce", FIGURE, SLOWING_DOWN[:1], SLOWING_DOWN[:1])


@pytest.mark.parametrize("load", [LOADS[name] for name in MEASURED])
def test_a_broker_that_failed_has_no_cost(load: Load) -> None:
    rows = {"odradek": PeerResult("", []), "odradek-metrics": PeerResult("", [], "it ended", True)}
    assert costs(result_of(load, rows, 1.0)) is None
