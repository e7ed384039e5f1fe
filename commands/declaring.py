"""The declaration of commands. An action has a word, a coroutine, options, and examples that a test runs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from commands.client.cluster_client import ClusterClient
from commands.errors import DONE, EXIT_CODES, FAILED, CommandError, misuse
from commands.printing import Output, Row


class Session(NamedTuple):
    """The parameters of an action: the cluster, the output and the options."""

    cluster: ClusterClient
    output: Output
    options: argparse.Namespace

    def confirm(self, typed: Sequence[str], what: str) -> None:
        """Asks the user to type the names of the things to be destroyed, unless --yes was given. Raises CommandError if
        other names are typed."""
        if self.options.yes:
            return
        names = " ".join(typed)
        if not sys.stdin.isatty():
            raise misuse(f"{what} {names} cannot be undone: without a terminal --yes is required")
        sys.stderr.write(f"{what} {names} cannot be undone. Type the name to go on: ")
        sys.stderr.flush()
        if sys.stdin.readline().split() != list(typed):
            raise CommandError("aborted: the name does not match")

    def results(self, columns: Sequence[str], rows: Sequence[Row]) -> int:
        """Prints the results, a row for each thing. Returns the exit code: FAILED if a row has an `error`."""
        shown = rows if self.output.is_json else [{**row, "result": _result(row)} for row in rows]
        self.output.rows([*columns, "result"], shown)
        return DONE if not any(row.get("error") for row in rows) else FAILED


def _result(row: Row) -> str:
    return str(row.get("error") or row.get("result") or "done")


Action: TypeAlias = Callable[[Session], Awaitable["int | None"]]
"""Carries out a command. Returns the exit code; None means DONE."""

Options: TypeAlias = Callable[[argparse.ArgumentParser], None]

DEFAULT_WIDTH: Final = 80


class HelpLayout(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal. argparse would import all of shutil for the width, even if no help is shown."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_terminal_width() - 2)


def _terminal_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH
    except (OSError, ValueError):  # no terminal, or no file
        return DEFAULT_WIDTH


STARTS_LIKE_A_NUMBER: Final = re.compile(r"-\d")
"""Positions and times such as -100 and -15m are values of options, not options."""


class IntermixedParser(argparse.ArgumentParser):
    """A parser that accepts options before, between and after the other words."""

    _is_intermixing = False

    def parse_known_args(  # type: ignore[override]  # the overloads of its base are about the namespace's class
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._negative_number_matcher = STARTS_LIKE_A_NUMBER
        has_words = any(action.nargs == argparse.PARSER for action in self._get_positional_actions())
        if has_words or self._is_intermixing:
            return super().parse_known_args(args, namespace)
        self._is_intermixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_intermixing = False


class Declared(NamedTuple):
    """A declared action, for the help, for completion, and for the test of its examples."""

    path: str
    parser: argparse.ArgumentParser
    examples: tuple[str, ...]


class Actions:
    """The actions of one command, such as `odradek topic`."""

    def __init__(self, name: str, purpose: str) -> None:
        self.name = name
        self.declared: list[Declared] = []
        self.parser = IntermixedParser(
            prog=f"odradek {name}", description=_sentence(purpose), formatter_class=HelpLayout
        )
        self._words: argparse._SubParsersAction[argparse.ArgumentParser] | None = None

    def add(
        self,
        word: str,
        purpose: str,
        action: Action,
        *,
        options: Options = lambda parser: None,
        examples: Sequence[str],
        more: str = "",
        concurrent: bool = False,
    ) -> None:
        """Declares `odradek NAME WORD`; `more` is further text for its help. A `concurrent` action sends several
        requests at once and needs an event loop, which is slow to import."""
        if self._words is None:
            self._words = self.parser.add_subparsers(
                title="commands", required=True, metavar="COMMAND", parser_class=IntermixedParser
            )
        parser = self._words.add_parser(word, help=purpose, formatter_class=HelpLayout)
        self._fill(parser, f"{self.name} {word}", purpose, action, options, examples, more, concurrent)

    def only(
        self,
        purpose: str,
        action: Action,
        *,
        options: Options = lambda parser: None,
        examples: Sequence[str],
        more: str = "",
        concurrent: bool = False,
    ) -> None:
        """Declares `odradek NAME`, which has no subcommands; otherwise like `add`."""
        self._fill(self.parser, self.name, purpose, action, options, examples, more, concurrent)

    def _fill(
        self,
        parser: argparse.ArgumentParser,
        path: str,
        purpose: str,
        action: Action,
        options: Options,
        examples: Sequence[str],
        more: str,
        concurrent: bool,
    ) -> None:
        lines = "".join(f"  {example}\n" for example in examples)
        parser.description = _sentence(purpose) + (f"\n\n{more}" if more else "")
        parser.epilog = f"examples:\n{lines}\n{EXIT_CODES}"
        parser.set_defaults(action=action, yes=False, concurrent=concurrent)
        options(parser)
        _common(parser)
        self.declared.append(Declared(path, parser, tuple(examples)))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _common(parser: argparse.ArgumentParser) -> None:
    common = parser.add_argument_group("options of every command")
    common.add_argument("-b", "--bootstrap", metavar="HOST:PORT", help="bootstrap brokers, separated by commas")
    common.add_argument("--profile", metavar="NAME", help="settings of a profile in ~/.config/odradek/profiles.toml")
    common.add_argument("--config", dest="config_file", metavar="FILE", help="settings of a client.properties file")
    common.add_argument(
        "-X", dest="assignments", action="append", default=[], metavar="NAME=VALUE", help="one setting; repeatable"
    )
    common.add_argument("-o", "--output", choices=("table", "json"), help="default: table on a terminal, else json")


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Adds --yes, for an action that destroys something."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def assignments(words: Sequence[str], option: str) -> Mapping[str, str]:
    """Returns NAME=VALUE words as a mapping. Raises CommandError, which names the option."""
    table: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise misuse(f"{option} {word}: expected NAME=VALUE, such as retention.ms=3600000")
        table[name] = value
    return table
