"""Tests the vocabulary of flags: a spelling has one meaning in all commands, and is declared once."""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator

from cli.flags import FLAGS
from tests.cli.parsers import declared, options
from tests.sources import report, sources, tree

STORAGE_TOOL = {"format", "info"}
"""Commands that use the letters of kafka-storage."""

BOTH_OF_RPK = {"-p": {"--partition", "--partitions"}}
"""A letter with two meanings, as in rpk: the partition of a record, and the number of partitions of a topic."""


def value_of(option: argparse.Action) -> str:
    """Returns the name of an option's value; empty for a switch."""
    if option.nargs == 0:
        return ""
    return option.metavar if isinstance(option.metavar, str) else ",".join(map(str, option.choices or ()))


def test_a_flag_has_the_same_value_in_every_command() -> None:
    values: dict[str, dict[str, str]] = defaultdict(dict)
    for path, option in options():
        values[option.option_strings[-1]][value_of(option)] = path
    allowed: dict[str, int] = defaultdict(lambda: 1)
    for flag in FLAGS:
        allowed[flag.names[-1]] = sum(flag.names[-1] in other.names for other in FLAGS)
    report(f"{name}: has the values {found}" for name, found in values.items() if len(found) > allowed[name])


def test_every_value_has_a_name_or_choices() -> None:
    report(
        f"{path} {option.option_strings}: no metavar"
        for path, option in options()
        if option.nargs != 0 and not value_of(option)
    )


def test_every_flag_has_help() -> None:
    report(f"{path} {option.option_strings}: no help" for path, option in options() if not option.help)


def test_a_letter_stands_for_one_flag() -> None:
    longs: dict[str, set[str]] = defaultdict(set)
    for path, option in options():
        for letter in option.option_strings[:-1]:
            if path not in STORAGE_TOOL:
                longs[letter].add(option.option_strings[-1])
    report(
        f"{letter}: {names}" for letter, names in longs.items() if len(names) > 1 and BOTH_OF_RPK.get(letter) != names
    )


def test_a_flag_of_the_table_is_used_by_several_commands() -> None:
    users: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path, option in options():
        users[option.option_strings[-1], value_of(option)].add(path)
    report(
        f"{flag.names[-1]}: used by {used}"
        for flag in FLAGS
        if len(used := users[flag.names[-1], flag.metavar or ",".join(flag.choices)]) < 2
    )


def spellings() -> Iterator[tuple[str, str]]:
    """Yields (spelling, place) of every declaration of an option."""
    for path, _ in sources("cli", "commands", "programs", "pipeline"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and (
                (isinstance(node.func, ast.Name) and node.func.id == "Flag")
                or ast.unparse(node.func).endswith(".add_argument")
            ):
                for word in ast.walk(node):
                    if isinstance(word, ast.Constant) and str(word.value).startswith("--"):
                        yield str(word.value), f"{path}:{node.lineno}"


def test_a_flag_is_declared_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, place in spellings():
        places[name].append(place)
    variants = {flag.names[-1] for flag in FLAGS if sum(flag.names == other.names for other in FLAGS) > 1}
    report(f"{name}: {found}" for name, found in places.items() if len(found) > 1 and name not in variants)


def test_every_action_has_examples_of_itself_and_its_exit_codes() -> None:
    for path, parser, examples in declared():
        assert any(f"odradek {path}" in example for example in examples), path
        assert "exit codes" in parser.format_help()
