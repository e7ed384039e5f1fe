"""`odradek completion`: scripts for shells, which call `odradek completion words` for the possible next words."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from commands.declaring import Actions
from commands.errors import DONE, MISUSED, CommandError
from commands.files import exists, profiles_path, read_text
from commands.table import CLUSTER_COMMANDS, CLUSTER_WORDS, find

BROKER_WORDS: Final = ("run", "cluster", "format", "info", "random-uuid", "log", "pipeline", "completion")

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

FIRST_WORDS: Final[dict[tuple[str, ...], list[str]]] = {
    ("cluster",): [*CLUSTER_WORDS],
    ("completion",): [*SCRIPTS],
}
"""The words that follow a first word that is not in the table of commands."""

USAGE: Final = """\
usage: odradek completion SHELL

Print a script that completes commands and options.

examples:
  odradek completion bash
  odradek completion zsh
  odradek completion fish

In ~/.bashrc:  eval "$(odradek completion bash)"
In ~/.zshrc:   eval "$(odradek completion zsh)"      (behind compinit)
For fish:      odradek completion fish > ~/.config/fish/completions/odradek.fish
"""


def main(words: Sequence[str]) -> int:
    """Prints a shell's script, or the words that may follow the words after `--`. Returns the exit code."""
    if words[:1] == ["words"]:
        rest = words[1:]
        sys.stdout.write("".join(f"{word}\n" for word in candidates(rest[1:] if rest[:1] == ["--"] else rest)))
        return DONE
    if len(words) == 1 and words[0] in SCRIPTS:
        sys.stdout.write(SCRIPTS[words[0]])
        return DONE
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return DONE
    sys.stderr.write(USAGE)
    return MISUSED


def candidates(words: Sequence[str]) -> list[str]:
    """Returns the words that may follow `words`: commands, then options, then the choices of an option, or the names of
    profiles."""
    if not words:
        return sorted({*CLUSTER_COMMANDS, *BROKER_WORDS})
    if tuple(words) in FIRST_WORDS:
        return FIRST_WORDS[tuple(words)]
    if words[-1] == "--profile":
        return profiles()
    if (command := find([*words])) is None:
        return []
    name, entry, rest = command
    actions = Actions(name, entry.purpose)
    import_module(entry.module).declare(actions)
    return _of(actions.parser, rest)


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


def profiles() -> list[str]:
    """Returns the names of profiles; none if their file can't be read, because a shell can't show the error."""
    import tomllib

    path = profiles_path(os.environ)
    if not exists(path):
        return []
    try:
        return [
            name for name, value in tomllib.loads(read_text(path, "profiles in")).items() if isinstance(value, dict)
        ]
    except (CommandError, tomllib.TOMLDecodeError):
        return []
