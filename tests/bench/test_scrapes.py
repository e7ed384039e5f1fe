"""Tests the cost of a scrape, which is measured by pairs of rounds."""

from __future__ import annotations

import pytest

from bench.figures import Sample
from bench.scrapes import Felt


def rounds(*p99_ms: float) -> list[Sample]:
    return [{"p50_ms": 0.3, "p99_ms": value, "p999_ms": 2 * value} for value in p99_ms]


@pytest.mark.parametrize(
    ("p99_ms", "scrapes_s", "is_within"),
    [
        ((1.0, 2.1, 4.0), [0.2, 0.2, 0.9], True),
        ((1.2, 2.4, 4.0), [0.2, 0.2, 0.2], False),
        ((1.0, 2.0, 40.0), [0.2], True),
        ((1.0, 2.0, 4.0), [0.2, 0.31, 0.4], False),
    ],
)
def test_a_round_is_held_against_the_one_before_it(
    p99_ms: tuple[float, ...], scrapes_s: list[float], is_within: bool
) -> None:
    felt = Felt(rounds(1.0, 2.0, 4.0), rounds(*p99_ms), scrapes_s)
    assert felt.is_within is is_within


def test_it_is_told_in_four_lines() -> None:
    felt = Felt(rounds(1.0), rounds(1.05), [0.2])
    assert str(felt).splitlines() == [
        "200 ms a scrape (200 at most)",
        "without scrapes: p50 0.30 ms, p99 1.00 ms, p999 2.00 ms",
        "with scrapes: p50 0.30 ms, p99 1.05 ms, p999 2.10 ms",
        "p99 ×1.05, p99.9 ×1.05, by 1 pairs",
    ]
