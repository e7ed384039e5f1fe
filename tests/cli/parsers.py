"""The parsers of all commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from cli.actions import Declared, declare_command
from cli.table import COMMANDS, find


def declared() -> Iterator[Declared]:
    """Yields every action of every command."""
    for name, command in COMMANDS.items():
        yield from declare_command(name, command).declared


def options() -> Iterator[tuple[str, argparse.Action]]:
    """Yields every option, with the path of its command, except --help."""
    for path, parser, _ in declared():
        for option in parser._actions:
            if option.option_strings and option.dest != "help":
                yield path, option


def parsed(words: list[str]) -> dict[str, object]:
    """Returns the options of a command line."""
    called = find(words)
    assert called is not None, words
    options = vars(declare_command(called.name, called.command).parser.parse_args(called.words))
    return {name: value for name, value in options.items() if name != "action"}
