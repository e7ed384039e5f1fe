"""The `odradek` command: finds a command in the table, parses its words, runs it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

from cli.actions import declare_command, program_of
from cli.exits import DONE, FAILED, MISUSED, discard_output, fail
from cli.parser import did_you_mean
from cli.table import COMMANDS, FAMILIES, Command, find, listing, second_words

USAGE: Final = "usage: odradek COMMAND [OPTION…]\n"
ABOUT: Final = "A broker with Kafka's protocol and Kafka's on-disk format, and commands for Kafka clusters.\n"
MORE: Final = "`odradek COMMAND --help` has the options of a command, with examples; `odradek --version` the version.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the process's exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _run(words)
    finally:
        _print()


def _print(text: str = "") -> None:
    """Writes a text and the rest of the output; ends the process if there is no room for it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        sys.exit(fail(FAILED, f"standard output: {error.strerror}"))


def _run(words: list[str]) -> int:
    if words[:2] == ["completion", "words"]:
        from cli.completion import print_candidates

        return print_candidates(words[2:])
    called = find(words)
    if called is None:
        return _without_command(words)
    if (below := second_words(called.name)) and called.words and not called.words[0].startswith("-"):
        return _unknown_second(called.name, called.words[0], below)
    try:
        options = declare_command(called.name, called.command).parser.parse_args(called.words)
        return program_of(called.command).run(options)
    except ModuleNotFoundError as error:
        if not called.command.needs:
            raise
        return fail(FAILED, called.command.needs.format(missing=error.name))


def _without_command(words: Sequence[str]) -> int:
    """Answers a line that names no command: --help, --version, or an error with a suggestion."""
    if words[:1] == ["--version"]:
        _print(f"odradek {_version()}\n")
        return DONE
    if words[:1] in (["-h"], ["--help"]):
        sections = "".join(f"\n{title}:\n{listing(commands)}\n" for title, commands in FAMILIES.items())
        _print(f"{USAGE}\n{ABOUT}{sections}\n{MORE}")
        return DONE
    if not words:
        return fail(MISUSED, "COMMAND is missing (see `odradek --help`)")
    if not (below := second_words(words[0])):
        known = dict.fromkeys(name.split()[0] for name in COMMANDS)
        return fail(MISUSED, f"unknown command {words[0]}{did_you_mean(words[0], known)} (see `odradek --help`)")
    rest = words[1:]
    if rest[:1] in (["-h"], ["--help"]):
        _print(f"usage: odradek {words[0]} COMMAND [OPTION…]\n\ncommands:\n{listing(below)}\n")
        return DONE
    if not rest:
        return fail(MISUSED, f"COMMAND is missing after {words[0]}: {', '.join(below)}")
    return _unknown_second(words[0], rest[0], below)


def _unknown_second(first: str, second: str, below: Mapping[str, Command]) -> int:
    """Answers a line whose second word is none of the words after the first."""
    advice = did_you_mean(second, below) or f"; expected {', '.join(below)}"
    return fail(MISUSED, f"unknown command {first} {second}{advice} (see `odradek {first} --help`)")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        installed = version("odradek")
    except PackageNotFoundError:
        installed = "(a source tree that is not installed)"
    return f"{installed} ({'compiled core' if _is_compiled() else 'pure Python'})"


def _is_compiled() -> bool:
    """True in a wheel with the extension modules that hatch_build.py makes."""
    from importlib.util import find_spec

    spec = find_spec("broker.network.listener")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")
