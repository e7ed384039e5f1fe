"""The parser of every command: options between other words, old spellings, help, and errors with a suggestion."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, NoReturn

from cli.exits import MISUSED

DEFAULT_WIDTH: Final = 80

STARTS_LIKE_A_NUMBER: Final = re.compile(r"-\d")
"""Positions and times such as -100 and -15m are values of options, not options."""


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


class Renamed(NamedTuple):
    """The flag that stands for another spelling, and the conversion of its value."""

    flag: str
    values: Callable[[str], Sequence[str]]
    is_old: bool = True
    """True if the spelling gets a warning, because the next version does not accept it."""


def unchanged(value: str) -> Sequence[str]:
    """Returns the value of an old spelling for a flag that accepts the same values."""
    return (value,)


class Parser(argparse.ArgumentParser):
    """A parser that accepts options before, between and after the other words."""

    def __init__(self, prog: str, *, description: str = "", usage: str | None = None) -> None:
        super().__init__(prog, usage, description, formatter_class=HelpLayout)
        self._negative_number_matcher = STARTS_LIKE_A_NUMBER
        self._renamed: dict[str, Renamed] = {}
        self._is_intermixing = False

    def rename(self, old: str, flag: str, values: Callable[[str], Sequence[str]] = unchanged) -> None:
        """Accepts an old spelling of a flag, with a warning. Help and completion don't show it."""
        self._renamed[old] = Renamed(flag, values)

    def alias(self, other: str, flag: str) -> None:
        """Accepts the spelling of another tool for a flag. Help and completion don't show it."""
        self._renamed[other] = Renamed(flag, unchanged, is_old=False)

    def parse_known_args(  # type: ignore[override]  # the overloads of its base are about the namespace's class
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._is_intermixing or self._has_subcommands():
            return super().parse_known_args(args, namespace)
        self._is_intermixing = True
        try:
            words = list(self._with_new_spellings(args or ()))
            options, unknown = self.parse_known_intermixed_args(words, namespace)
        finally:
            self._is_intermixing = False
        if unknown:
            self.error(self._describe_unknown(unknown[0]))
        return options, []

    def _has_subcommands(self) -> bool:
        return any(action.nargs == argparse.PARSER for action in self._get_positional_actions())

    def _with_new_spellings(self, words: Iterable[str]) -> Iterator[str]:
        rest, warned = iter(words), set[str]()
        for word in rest:
            name, equals, value = word.partition("=")
            if name not in self._renamed:
                if word.startswith("--") and " " not in word and not self._is_option(name):
                    self.error(self._describe_unknown(word))
                yield word
                continue
            flag, values, is_old = self._renamed[name]
            if is_old and name not in warned:
                warn_of_old(name, flag)
                warned.add(name)
            given = value if equals else next(rest, None) if self._takes_a_value(flag) else None
            if given is None:
                yield flag
            else:
                yield from (f"{flag}={new}" for new in values(given))

    def _is_option(self, name: str) -> bool:
        """True if a word is an option, or an abbreviation."""
        return any(option.startswith(name) for option in self._option_string_actions)

    def _takes_a_value(self, flag: str) -> bool:
        return self._option_string_actions[flag].nargs != 0

    def _describe_unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word}"
        name = word.partition("=")[0]
        begun = [flag for flag in self._option_string_actions if name.startswith(f"{flag}-")]  # --to-earliest
        advice = did_you_mean(name, begun, least=0) or did_you_mean(name, self._option_string_actions)
        return f"unknown option {name}{advice}"

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            advice = did_you_mean(str(value), choices) or f"; expected {', '.join(choices)}"
            if isinstance(action, argparse._SubParsersAction):
                self.error(f"unknown command {value}{advice}")
            raise argparse.ArgumentError(action, f"{value} is unknown{advice}")

    def error(self, message: str) -> NoReturn:
        """Prints what is wrong, and where help is. Ends the process."""
        self.exit(MISUSED, f"odradek: {message.removeprefix('argument ')} (see `{self.prog} --help`)\n")


def warn_of_old(old: str, new: str) -> None:
    """Prints the warning for an old spelling."""
    sys.stderr.write(f"odradek: {old} is now {new}; the next version does not accept {old}\n")


def did_you_mean(word: str, words: Iterable[str], least: float = 0.6) -> str:
    """Returns the suggestion of the most similar word, to append to an error; empty if none is similar, by difflib's
    ratio."""
    from difflib import get_close_matches  # slow to import, and only errors need it

    close = get_close_matches(word, list(words), n=1, cutoff=least)
    return f"; did you mean {close[0]}?" if close else ""
