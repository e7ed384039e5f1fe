"""Tests rates over sample windows, of both kinds that Kafka has, and the throttle time of a client beyond its quota."""

from __future__ import annotations

import pytest

from coordinator.rate import MAX_WAIT_MS, Rate

SAMPLES, WINDOW_MS = 3, 1000


@pytest.fixture
def rate() -> Rate:
    return Rate(SAMPLES, WINDOW_MS, least_windows=1)


def test_there_is_none_at_first(rate: Rate) -> None:
    assert rate.per_second(0) == 0


def test_the_first_window_counts_as_a_whole_one(rate: Rate) -> None:
    rate.record(500, 0)
    rate.record(500, 10)
    assert rate.per_second(10) == rate.per_second(1000) == 1000
    assert rate.per_second(2000) == 500


def test_what_is_older_than_all_windows_counts_no_more(rate: Rate) -> None:
    rate.record(900, 0)
    rate.record(300, 1500)
    assert rate.per_second(2999) == pytest.approx(1200 / 2.999)
    assert rate.per_second(3000) == 300 / 1.5
    assert rate.per_second(4500) == 0


def test_a_rate_at_its_limit_is_not_throttled() -> None:
    rate = Rate(11, 1000)
    for second in range(20):
        rate.record(100, second * 1000)
        assert rate.throttle_ms(110, second * 1000) == 0


def test_who_is_beyond_waits_until_the_rate_is_back() -> None:
    rate = Rate(11, 1000)
    rate.record(3000, 0)
    assert rate.throttle_ms(100, 0) == 20_000
    rate.take_back(3000)
    assert rate.throttle_ms(100, 0) == 0


def test_what_was_long_ago_counts_no_more() -> None:
    rate = Rate(3, 1000)
    rate.record(1000, 0)
    assert not rate.is_idle(2999)
    assert rate.is_idle(3000)


def test_who_has_next_to_no_quota_waits_as_long_as_an_answer_can_say() -> None:
    rate = Rate(11, 1000)
    rate.record(1e9, 0)
    assert rate.throttle_ms(5e-324, 0) == MAX_WAIT_MS


def test_a_quota_of_nothing_throttles_as_long_as_an_answer_can_say() -> None:
    rate = Rate(11, 1000)
    rate.record(1, 0)
    assert rate.throttle_ms(0, 0) == MAX_WAIT_MS


@pytest.mark.parametrize(("least_windows", "per_second"), [(1, 600), (3, 300)])
def test_the_first_window_counts_with_the_least_windows(least_windows: int, per_second: float) -> None:
    rate = Rate(SAMPLES, WINDOW_MS, least_windows)
    rate.record(600, 0)
    assert rate.per_second(0) == per_second
