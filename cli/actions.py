"""The declaration of a command: its actions with their options, help and examples, which a test runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, NamedTuple, Required, TypeAlias, TypedDict, Unpack

from cli.parser import Parser
from cli.table import Command, listing, second_words

Options: TypeAlias = Callable[[Parser], None]
"""Adds the options of an action to its parser."""

Action: TypeAlias = Callable[..., object]
"""Carries out a command. A Program calls it."""


def no_options(_: Parser) -> None:
    """Adds no options."""


class Program(NamedTuple):
    """The common parts of a family of commands: how an action runs, the options that all commands have, and the exit
    codes."""

    run: Callable[[argparse.Namespace], int]
    exit_codes: str
    options: Options = no_options


class Details(TypedDict, total=False):
    """The declaration of an action: its options, examples, further text for its help, and its own exit codes. A
    `concurrent` action sends several requests at once and needs an event loop, which is slow to import."""

    options: Options
    examples: Required[Sequence[str]]
    more: str
    exit_codes: str
    concurrent: bool


class Declared(NamedTuple):
    """A declared action, for the help, for completion, and for the test of its examples."""

    path: str
    parser: Parser
    examples: tuple[str, ...]


class Actions:
    """The actions of one command, such as `odradek topic`."""

    def __init__(self, name: str, purpose: str, program: Program) -> None:
        self.name: Final = name
        self.declared: Final[list[Declared]] = []
        self.parser: Final = Parser(f"odradek {name}", description=_sentence(purpose))
        self._program = program
        self._purpose = purpose
        self._words: argparse._SubParsersAction[Parser] | None = None

    def add(self, word: str, purpose: str, action: Action, **details: Unpack[Details]) -> None:
        """Declares `odradek NAME WORD`."""
        if self._words is None:
            self._words = self.parser.add_subparsers(
                title="commands", required=True, metavar="COMMAND", parser_class=Parser
            )
        self._fill(self._words.add_parser(word, help=purpose), f"{self.name} {word}", purpose, action, details)

    def only(self, action: Action, **details: Unpack[Details]) -> None:
        """Declares `odradek NAME`, which has no subcommands."""
        self._fill(self.parser, self.name, self._purpose, action, details)

    def _fill(self, parser: Parser, path: str, purpose: str, action: Action, details: Details) -> None:
        lines = "".join(f"  {example}\n" for example in details["examples"])
        more = details.get("more")
        below = listing({f"{path} {word}": command for word, command in second_words(path).items()})
        parser.description = "\n\n".join(
            part for part in (_sentence(purpose), below and f"further commands:\n{below}", more) if part
        )
        parser.epilog = f"examples:\n{lines}\nexit codes: {details.get('exit_codes') or self._program.exit_codes}"
        parser.set_defaults(action=action, yes=False, concurrent=details.get("concurrent", False))
        details.get("options", no_options)(parser)
        self._program.options(parser)
        self.declared.append(Declared(path, parser, tuple(details["examples"])))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def declare_command(name: str, command: Command) -> Actions:
    """Declares the actions of a command."""
    actions = Actions(name, command.purpose, program_of(command))
    import_module(command.module).declare(actions)
    return actions


def program_of(command: Command) -> Program:
    """Returns the program that runs a command's actions."""
    program: Program = import_module(command.program).PROGRAM
    return program
