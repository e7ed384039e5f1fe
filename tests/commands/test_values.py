"""Tests times, positions and tables: the small values that users type and commands print."""

from __future__ import annotations

import json

import pytest

from cli.durations import parse_duration
from cli.times import parse_time, show_time
from commands.printing import aligned, as_json, cell
from commands.records.positions import END, START, Position, PositionKind, offset_of, parse_position

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("0s", 0), ("500ms", 500), ("90s", 90_000), ("1.5h", 5_400_000), ("7d", 604_800_000), ("2w", 1_209_600_000)],
)
def test_a_duration_has_a_number_and_a_unit(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5y", "nans", "infs", "1e400s", "5 s s"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 500ms"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("now", NOW_MS),
        ("-15m", NOW_MS - 900_000),
        ("1767225600000", 1_767_225_600_000),
        ("2026-01-01T00:00:00", 1_767_225_600_000),
        ("2026-01-01T01:00:00+01:00", 1_767_225_600_000),
        ("20260101", 1_767_225_600_000),
        ("2026-01-01T00:00:00.25Z", 1_767_225_600_250),
    ],
)
def test_a_time_is_of_iso_8601_or_milliseconds_or_before_now(text: str, milliseconds: int) -> None:
    assert parse_time(text, NOW_MS) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "2026-13-01", "12:00"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as"):
        parse_time(text, NOW_MS)


def test_a_timestamp_is_shown_in_utc_unless_there_is_none() -> None:
    assert show_time(1_767_225_600_250) == "2026-01-01T00:00:00.250Z"
    assert show_time(-1) is None
    assert show_time(1 << 62) == str(1 << 62)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", START),
        ("end", END),
        ("17", Position(PositionKind.OFFSET, 17)),
        ("+3", Position(PositionKind.AFTER_START, 3)),
        ("-3", Position(PositionKind.BEFORE_END, 3)),
        ("@-1s", Position(PositionKind.TIME, NOW_MS - 1000)),
    ],
)
def test_a_position_is_a_word_a_number_or_a_time(text: str, position: Position) -> None:
    assert parse_position(text, NOW_MS) == position


@pytest.mark.parametrize("text", ["", "+", "-x", "middle", "1.5", "@", str(1 << 63), "٣"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as|is not a position"):
        parse_position(text, NOW_MS)


@pytest.mark.parametrize(
    ("position", "offset"),
    [
        (START, 10),
        (END, 20),
        (Position(PositionKind.OFFSET, 15), 15),
        (Position(PositionKind.OFFSET, 5), 10),
        (Position(PositionKind.OFFSET, 25), 20),
        (Position(PositionKind.AFTER_START, 4), 14),
        (Position(PositionKind.BEFORE_END, 4), 16),
        (Position(PositionKind.BEFORE_END, 40), 10),
    ],
)
def test_an_offset_is_within_what_the_partition_has(position: Position, offset: int) -> None:
    assert offset_of(position, 10, 20) == offset


def test_a_time_behind_the_last_record_is_the_end() -> None:
    assert offset_of(Position(PositionKind.TIME, NOW_MS), 10, 20, by_time=12) == 12
    assert offset_of(Position(PositionKind.TIME, NOW_MS), 10, 20, by_time=-1) == 20


def test_cells_say_what_a_reader_expects() -> None:
    assert [cell(value) for value in (None, "", [], True, False, 0, [1, 2], {"a": "b"}, {})] == [
        "-", "-", "-", "yes", "no", "0", "1,2", "a=b", "-",
    ]  # fmt: skip


def test_columns_stand_below_each_other_and_numbers_to_the_right() -> None:
    assert aligned([["NAME", "N"], ["a", "1"], ["long name", "100"]], {1}) == [
        "NAME         N",
        "a            1",
        "long name  100",
    ]


def test_json_is_one_line_whatever_is_in_it() -> None:
    line = as_json({"value": "a\nb ü", "none": None})
    assert "\n" not in line
    assert json.loads(line) == {"value": "a\nb ü", "none": None}
