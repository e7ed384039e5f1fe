"""Tests the differences that an audit reports."""

from __future__ import annotations

import pytest

from pipeline.completeness import Cell, Count, by_partition, compared, difference

CELL, LATER = Cell("t", 0, 0), Cell("t", 0, 3_600_000)


@pytest.mark.parametrize(
    ("there", "text"),
    [
        (Count(10, 10, 7), "complete"),
        (Count(8, 8, 6), "2 missing"),
        (Count(12, 10, 7), "2 doubled"),
        (Count(10, 8, 6), "2 missing, 2 doubled"),
        (Count(11, 11, 6), "1 not from the topic"),
        (Count(10, 10, 6), "altered"),
        (Count(), "10 missing"),
    ],
)
def test_a_difference_is_told(there: Count, text: str) -> None:
    assert difference("loaded", Count(10, 10, 7), there).text == text


def test_windows_that_only_one_stage_has_are_lines_too() -> None:
    lines = compared({CELL: Count(3, 3, 1)}, {"loaded": {LATER: Count(2, 2, 1)}})
    assert [(line.cell, line.produced, line.stages[0].text) for line in lines] == [
        (CELL, 3, "3 missing"),
        (LATER, 0, "2 not from the topic"),
    ]


def test_sums_over_windows_hide_nothing() -> None:
    lines = compared({CELL: Count(3, 3, 1)}, {"loaded": {LATER: Count(2, 2, 1)}})
    (line,) = by_partition(lines)
    assert (line.produced, line.stages[0].text) == (3, "3 missing, 2 not from the topic")
    assert not line.clean
