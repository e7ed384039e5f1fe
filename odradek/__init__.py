"""The import name of the wheel, and the `odradek` command. `odradek.testing` has brokers for test suites.

The packages of Odradek import each other as `protocol`, `storage`, `coordinator`, `broker`, `programs` and `commands`.
In a wheel they are folders inside this one, in the source tree they lie beside it. Only the command puts their parent
folder on the path, as the first entry, so that other programs never see those names.
"""

import os
import sys


def add_packages() -> None:
    """Puts the folder of Odradek's packages first on the path of this process."""
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.isdir(os.path.join(here, "broker"))
    sys.path.insert(0, here if installed else os.path.dirname(here))


def main() -> int:
    """Runs the command line. Returns the exit code."""
    add_packages()
    from commands.table import CLUSTER_COMMANDS, find

    if sys.argv[1:2] == ["completion"]:
        from commands.completion import main as complete

        return complete(sys.argv[2:])
    if (command := find(sys.argv[1:])) is not None:
        from commands.main import main as talk_to_a_cluster

        return talk_to_a_cluster(*command)
    from programs.run.cli import main as run

    purposes = {name: command.purpose for name, command in CLUSTER_COMMANDS.items()}
    return run(beside={**purposes, "completion": "print a completion script for bash, zsh or fish"})
