"""`odradek completion`: scripts for shells, which call `odradek completion words` for the possible next words."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from cli.actions import Actions, Program, declare_command
from cli.exits import DONE
from cli.parser import Parser
from cli.table import COMMANDS, find, second_words

BASH: Final = """\
_odradek() {
    local IFS=$'\\n' words
    words=$(odradek completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _odradek odradek
"""
ZSH: Final = """\
#compdef odradek
_odradek() {
    local -a candidates
    candidates=("${(@f)$(odradek completion words -- "${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
    compadd -a candidates || _files
}
compdef _odradek odradek
"""
FISH: Final = """\
complete -c odradek -a '(odradek completion words -- (commandline -opc)[2..] 2>/dev/null)'
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}

INSTALL: Final = """\
In ~/.bashrc:  eval "$(odradek completion bash)"
In ~/.zshrc:   eval "$(odradek completion zsh)"      (after compinit)
For fish:      odradek completion fish > ~/.config/fish/completions/odradek.fish"""


def declare(actions: Actions) -> None:
    actions.only(
        print_script, options=_options, examples=[f"odradek completion {shell}" for shell in SCRIPTS], more=INSTALL
    )


def _options(parser: Parser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))


def print_script(options: argparse.Namespace) -> int:
    """Prints the script of a shell. Returns the exit code."""
    sys.stdout.write(SCRIPTS[options.shell])
    return DONE


PROGRAM: Final = Program(print_script, "0 done, 2 wrong arguments")


def print_candidates(words: Sequence[str]) -> int:
    """Prints the words that may follow the words after `--`. Returns the exit code."""
    sys.stdout.write("".join(f"{word}\n" for word in candidates(words[1:] if words[:1] == ["--"] else words)))
    return DONE


def candidates(words: Sequence[str]) -> list[str]:
    """Returns the words that may follow `words`: commands, then options, then the choices of an option, or the names of
    profiles."""
    if not words:
        return sorted({name.split()[0] for name in COMMANDS})
    if words[-1] == "--profile":
        names: list[str] = import_module("commands.client.settings").profile_names(os.environ)
        return names
    below = [*second_words(words[0])] if len(words) == 1 else []
    if (called := find([*words])) is None:
        return below
    try:
        return [*below, *_of(declare_command(called.name, called.command).parser, called.words)]
    except ModuleNotFoundError:  # a job's packages are not installed
        return []


def _of(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    options: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen = next((word for word in words if word in action.choices), None)
            if chosen is None:
                return list(action.choices)
            below: argparse.ArgumentParser = action.choices[chosen]
            return _of(below, words[words.index(chosen) + 1 :])
        if words and words[-1] in action.option_strings and action.nargs != 0:
            return [str(choice) for choice in action.choices or ()]
        if not action.option_strings and action.choices and not words:
            options += map(str, action.choices)
        options += [option for option in action.option_strings if option.startswith("--")]
    return options
