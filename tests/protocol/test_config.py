"""Tests options: the attributes of a declaration, and the texts of values and errors, which clients of Kafka see."""

from __future__ import annotations

import pytest

from protocol.config import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Config,
    ConfigError,
    double_to_text,
    option,
)


class Garden(Config):
    KIND = "garden"

    trees = option(INT, 3, "Trees.", at_least=1, at_most=9)
    wall_height = option(DOUBLE, 1.5, "Metres.")
    kinds = option(LIST, ("oak",), "Kinds.", one_of=("oak", "elm"), may_be_empty=False)
    any_kinds = option(LIST, None, "Kinds.")
    rows = option(LIST, (), "Rows.", distinct=False)
    gate = option(STRING, "shut", "Gate.", one_of=("open", "shut"))
    key = option(PASSWORD, None, "Key.")
    lit = option(BOOLEAN, False, "Lit.")
    paths = option(SHORT, 1, "Paths.")
    seeds = option(LONG, 0, "Seeds.")
    motto = option(STRING, None, "Motto.", may_be_empty=False)


class Park(Garden):
    ponds = option(INT, 0, "Ponds.")


def error(texts: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as raised:
        Garden.parse(texts)
    return raised.value.message


def test_a_declaration_is_an_attribute_with_its_default() -> None:
    assert (Garden().trees, Garden().wall_height, Garden.kinds) == (3, 1.5, ("oak",))


def test_a_parsed_config_has_the_given_values_and_the_defaults() -> None:
    garden = Garden.parse({"trees": " 4 ", "kinds": "oak , elm", "lit": "TRUE", "seeds": "+9"})
    assert (garden.trees, garden.kinds, garden.lit, garden.seeds, garden.gate) == (4, ("oak", "elm"), True, 9, "shut")
    assert garden.explicit == {"trees": " 4 ", "kinds": "oak , elm", "lit": "TRUE", "seeds": "+9"}


def test_a_subclass_has_the_options_of_its_bases() -> None:
    assert (Park.parse({"trees": "5", "ponds": "2"}).trees, Park().gate) == (5, "shut")
    assert "ponds" not in Garden.OPTIONS


def test_values_may_stand_over_other_values_than_the_defaults() -> None:
    assert Garden.parse({"gate": "open"}, {**Garden.DEFAULTS, "trees": 7}).trees == 7


def test_a_config_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Garden().trees = 4


def test_values_by_attribute_are_for_known_options_only() -> None:
    assert Garden(trees=100).trees == 100
    with pytest.raises(TypeError, match="has no option flowers"):
        Garden(flowers=1)


def test_equal_configs_are_equal() -> None:
    assert Garden.parse({"trees": "3"}) == Garden.parse({"trees": "3"})
    assert Garden.parse({"trees": "4"}) != Garden.parse({"trees": "3"})


def test_a_password_is_not_shown() -> None:
    assert repr(Garden.parse({"key": "secret", "trees": "4"})) == "Garden(trees=4, key='[hidden]')"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("trees", "0", "Invalid value 0 for configuration trees: Value must be at least 1"),
        ("trees", "10", "Invalid value 10 for configuration trees: Value must be no more than 9"),
        ("trees", "x", "Invalid value x for configuration trees: Not a number of type INT"),
        ("trees", "", "Invalid value  for configuration trees: Not a number of type INT"),
        ("trees", "1_0", "Invalid value 1_0 for configuration trees: Not a number of type INT"),
        ("trees", "99999999999", "Invalid value 99999999999 for configuration trees: Not a number of type INT"),
        ("paths", "40000", "Invalid value 40000 for configuration paths: Not a number of type SHORT"),
        ("seeds", "1e3", "Invalid value 1e3 for configuration seeds: Not a number of type LONG"),
        ("wall.height", "abc", "Invalid value abc for configuration wall.height: Not a number of type DOUBLE"),
        ("lit", "yes", "Invalid value yes for configuration lit: Expected value to be either true or false"),
        ("gate", "ajar", "Invalid value ajar for configuration gate: String must be one of: open, shut"),
        ("kinds", "fir", "Invalid value fir for configuration kinds: String must be one of: oak, elm"),
        ("kinds", "oak,", "Configuration 'kinds' values must not be empty."),
        ("kinds", "", "Configuration 'kinds' must not be empty. Valid values include: [oak, elm]"),
        ("motto", "", "Invalid value  for configuration motto: String must be non-empty"),
        ("flowers", "1", "Unknown garden config name: flowers"),
    ],
)
def test_an_error_is_worded_as_kafka_words_it(name: str, text: str, message: str) -> None:
    assert error({name: text}) == message


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1.0), ("1d", 1.0), (".5", 0.5), ("1e-5", 1e-5), ("-Infinity", float("-inf"))]
)
def test_a_double_is_spelled_as_in_java(text: str, value: float) -> None:
    assert Garden.parse({"wall.height": text}).wall_height == value


def test_a_list_keeps_one_of_equal_entries_unless_it_says_otherwise() -> None:
    garden = Garden.parse({"kinds": "oak,elm,oak", "rows": "1,1,"})
    assert (garden.kinds, garden.rows) == (("oak", "elm"), ("1", "1", ""))


def test_an_empty_list_is_a_value_and_no_list_another() -> None:
    assert (Garden.parse({"any.kinds": ""}).any_kinds, Garden().any_kinds) == ((), None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1.0"),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (1234567, "1234567.0"),
        (0.001, "0.001"),
        (9.9e-4, "9.9E-4"),
        (-12345678.0, "-1.2345678E7"),
        (123456789.125, "1.23456789125E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e-5, "1.0E-5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert double_to_text(value) == text


def test_values_are_written_as_they_are_in_kafkas_answers() -> None:
    written = {name: one.text(Garden.DEFAULTS[one.attribute]) for name, one in Garden.OPTIONS.items()}
    assert written == {
        "trees": "3",
        "wall.height": "1.5",
        "kinds": "oak",
        "any.kinds": None,
        "rows": "",
        "gate": "shut",
        "key": None,
        "lit": "false",
        "paths": "1",
        "seeds": "0",
        "motto": None,
    }
