"""Tests whole numbers and patterns in texts of any length and form."""

from __future__ import annotations

import re

import pytest

from protocol.numbers import longest_number, port_number, whole_number
from protocol.patterns import MAX_NESTING, python_pattern

LONG = 5_000
"""More digits than `int` accepts, and more groups than Python's compiler can nest."""


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("-0", 0), ("+5", 5), ("-5", -5), ("9223372036854775807", (1 << 63) - 1),
    ("-9223372036854775808", -(1 << 63)), ("0" * LONG + "1", 1), ("-" + "0" * LONG, 0), ("٣", 3),
])  # fmt: skip
def test_a_number_is_read_as_java_reads_it(text: str, value: int) -> None:
    assert whole_number(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "+", "-", "+-1", " 1", "1 ", "1_0", "1.0", "x", "9223372036854775808", "-9223372036854775809", "9" * LONG],
)
def test_what_is_no_number_of_an_int64_is_none(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize(("text", "port"), [
    ("0", 0), ("65535", 65_535), ("0" * LONG + "1", 1), ("65536", None), ("9" * LONG, None), ("+1", None), ("", None),
    ("٣", None),
])  # fmt: skip
def test_a_port_is_digits(text: str, port: int | None) -> None:
    assert port_number(text) == port


@pytest.mark.parametrize(("digits", "most", "number"), [
    ("12", 12, (12, 2)), ("12", 11, (1, 1)), ("0012", 3, (1, 3)), ("9", 3, (0, 0)), ("9" * LONG, 3, (0, 0)),
    ("0" * LONG, 3, (0, LONG)),
])  # fmt: skip
def test_the_longest_number_within_a_bound(digits: str, most: int, number: tuple[int, int]) -> None:
    assert longest_number(digits, most) == number


@pytest.mark.parametrize("text", [
    "(" * LONG + ")" * LONG, "(" * LONG, "(" * (MAX_NESTING + 1) + ")" * (MAX_NESTING + 1), "a{" + "9" * 30 + "}",
    "a{" + "9" * LONG + "}", "(", "*",
], ids=["nested", "open", "one too many", "thirty digits", "many digits", "unclosed", "nothing to repeat"])  # fmt: skip
def test_a_pattern_that_cannot_be_compiled_raises_re_error(text: str) -> None:
    with pytest.raises(re.error):
        python_pattern(text)


@pytest.mark.parametrize("text", ["(" * MAX_NESTING + ")" * MAX_NESTING, "(a)" * LONG, "a{3}"])
def test_a_pattern_that_can_be_compiled_is(text: str) -> None:
    assert python_pattern(text).pattern == text
