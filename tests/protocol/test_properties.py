"""Tests the .properties format, as java.util.Properties reads it."""

from __future__ import annotations

import pytest

from protocol.config import ConfigError
from protocol.properties import Property, read_properties


def read(text: str) -> dict[str, str]:
    return {name: value for name, value, _ in read_properties(text)}


@pytest.mark.parametrize(
    "text", ["a=b", "a = b", "a:b", "a : b", "a b", "a\tb", "  a=b", "a=b\n", "a=b\r\n", "a =\tb", "\n\na=b\n\n"]
)
def test_equals_colon_or_space_separate(text: str) -> None:
    assert read(text) == {"a": "b"}


def test_a_value_keeps_what_follows_it() -> None:
    assert read("a=b = c \nd=") == {"a": "b = c ", "d": ""}


def test_a_key_alone_has_an_empty_value() -> None:
    assert read("a") == {"a": ""}


def test_comments_and_empty_lines_are_nothing() -> None:
    assert read("# a=b\n  ! c=d\n\n \t\n#e\\\nf=g") == {"f": "g"}


def test_a_backslash_continues_a_line_and_drops_the_next_ones_indent() -> None:
    assert read("a=b,\\\n    c,\\\r\n\td\ne=f") == {"a": "b,c,d", "e": "f"}


def test_a_comment_sign_does_not_begin_a_continued_line() -> None:
    assert read("a=b\\\n#c") == {"a": "b#c"}


def test_an_even_number_of_backslashes_does_not_continue() -> None:
    assert read("a=b\\\\\nc=d") == {"a": "b\\", "c": "d"}


def test_the_file_may_end_in_a_backslash() -> None:
    assert read("a=b\\") == {"a": "b"}


def test_escapes_stand_for_characters() -> None:
    assert read(r"a\ b\:c\=d=\t\n\\\q\u00e9\u4E2d") == {"a b:c=d": "\t\n\\qé中"}


def test_two_escapes_may_spell_one_character() -> None:
    assert read(r"a=\ud83d\ude00") == {"a": "😀"}


def test_a_broken_escape_is_told_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"line 2: .*four hexadecimal digits"):
        read("a=b\nc=\\u12x4")


def test_properties_tell_the_lines_where_they_begin() -> None:
    text = "#\na=1\\\n2\n\nb=3\n"
    assert list(read_properties(text)) == [Property("a", "12", 2), Property("b", "3", 5)]
