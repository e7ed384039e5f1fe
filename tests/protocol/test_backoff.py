"""Tests the pauses before a failed attempt is repeated."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protocol.backoff import Backoff


@given(st.integers(-1, 1 << 40), st.floats(0, 1, exclude_max=True))
def test_a_wait_stays_within_its_jitter_of_the_maximum(failures: int, draw: float) -> None:
    assert 0 <= Backoff().delay_ms(failures, draw) <= 1200


def test_waits_double_up_to_the_maximum() -> None:
    assert [Backoff().delay_ms(failures, 0.5) for failures in range(8)] == [0, 50, 100, 200, 400, 800, 1000, 1000]
    assert (Backoff().delay_ms(1, 0.0), Backoff().delay_ms(1, 0.999)) == (40, 59)


def test_without_a_draw_a_wait_has_no_jitter() -> None:
    dead_letters = Backoff(initial_ms=1_000, max_ms=30_000)
    assert [dead_letters.delay_ms(failures) for failures in range(1, 8)] == [
        1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]  # fmt: skip
