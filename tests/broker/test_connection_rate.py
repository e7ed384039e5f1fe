"""Tests the limits on the rate of connections, as Apache Kafka measures it."""

from __future__ import annotations

from broker.network.admission import ConnectionRates

WINDOWS, WINDOW_MS = 11, 1_000
"""Apache Kafka's defaults."""


def test_who_made_none_for_long_may_make_ten_seconds_worth_at_once() -> None:
    rate = ConnectionRates(WINDOWS, WINDOW_MS)
    assert [rate.delay_ms(None, 0, 5) for _ in range(51)] == [0] * 50 + [200]


def test_the_delay_is_what_is_owed_and_a_window_at_most() -> None:
    rate = ConnectionRates(WINDOWS, WINDOW_MS)
    delays = [rate.delay_ms(None, 0, 5) for _ in range(60)]
    assert delays[50:] == [200, 400, 600, 800, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000]


def test_a_little_below_the_rate_nobody_waits() -> None:
    rate = ConnectionRates(WINDOWS, WINDOW_MS)
    assert not any(rate.delay_ms(None, now_ms, 5) for now_ms in range(0, 60_000, 210))


def test_what_is_past_is_forgotten() -> None:
    rate = ConnectionRates(WINDOWS, WINDOW_MS)
    for _ in range(60):
        rate.delay_ms(None, 0, 5)
    assert rate.delay_ms(None, 10_999, 5) > 0
    assert rate.delay_ms(None, 11_000, 5) == 0


def test_no_connections_at_all() -> None:
    assert ConnectionRates(WINDOWS, WINDOW_MS).delay_ms(None, 0, 0) == WINDOW_MS


def test_an_address_that_is_refused_is_not_punished_for_asking() -> None:
    rates = ConnectionRates(WINDOWS, WINDOW_MS)
    assert [rates.delay_ms("a", 0, 1) for _ in range(30)] == [0] * 10 + [1_000] * 20
    assert rates.delay_ms("b", 0, 1) == 0
    assert rates.delay_ms("a", 11_000, 1) == 0


def test_addresses_that_are_gone_take_no_memory() -> None:
    rates = ConnectionRates(WINDOWS, WINDOW_MS)
    for number in range(1000):
        rates.delay_ms(f"10.0.0.{number}", number * 100, 1)
    assert len(rates) <= WINDOWS * 10 + 1
