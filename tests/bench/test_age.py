"""Tests how the memory over the cycles of bench.age is summed up."""

from __future__ import annotations

import pytest
from rich.console import Console

from bench.age import ROWS, WARM_UP, growth, parts, table
from bench.figures import Sample


def cycles(*private_mb: float) -> list[Sample]:
    return [{"private_mb": value, "rss_peak_mb": 50.0, "cycle_s": 30.0} for value in private_mb]


@pytest.mark.parametrize("count", [0, 1, ROWS - 1, ROWS, ROWS + 1, 57])
def test_every_cycle_is_in_one_part(count: int) -> None:
    samples = cycles(*map(float, range(count)))
    divided = list(parts(samples, ROWS))
    assert [sample for part in divided for sample in part] == samples
    assert len(divided) == min(count, ROWS)
    assert all(divided)


def test_the_last_tenth_is_compared_with_the_first_after_the_warm_up() -> None:
    steady = [30.0] * 20
    assert growth(cycles(*[10.0] * WARM_UP, *steady, 33.0, 33.0, 33.0)) == pytest.approx(1.1)
    assert growth(cycles(*[10.0] * WARM_UP, 30.0, 36.0)) == pytest.approx(1.2)


def test_too_few_cycles_have_no_growth() -> None:
    assert growth(cycles(*[10.0] * (WARM_UP + 1))) is None
    assert growth([]) is None


def test_the_table_has_the_median_of_each_part() -> None:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(table(cycles(*map(float, range(30)))))
    rows = [line.split("│") for line in capture.get().splitlines() if "–" in line]
    assert [row[1].strip() for row in rows][:2] == ["1–3", "4–6"]
    assert [row[2].strip() for row in rows][:2] == ["1.0", "4.0"]
