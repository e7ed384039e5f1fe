"""A rate is over the windows that there are: at least one, at most as many as are kept."""

from __future__ import annotations

import pytest

from coordinator.replication.rate import SampledRate

SAMPLES, WINDOW_MS = 3, 1000


@pytest.fixture
def rate() -> SampledRate:
    return SampledRate(SAMPLES, WINDOW_MS)


def test_there_is_none_at_first(rate: SampledRate) -> None:
    assert rate.per_second(0) == 0


def test_the_first_window_counts_as_a_whole_one(rate: SampledRate) -> None:
    rate.record(500, 0)
    rate.record(500, 10)
    assert rate.per_second(10) == rate.per_second(1000) == 1000
    assert rate.per_second(2000) == 500


def test_what_is_older_than_all_windows_counts_no_more(rate: SampledRate) -> None:
    rate.record(900, 0)
    rate.record(300, 1500)
    assert rate.per_second(2999) == pytest.approx(1200 / 2.999)
    assert rate.per_second(3000) == 300 / 1.5
    assert rate.per_second(4500) == 0
