"""Tests that docs/commands.md lists all commands, and that its table has only existing commands."""

from __future__ import annotations

import shlex

from cli.actions import declare_command
from cli.flags import FLAGS, Flag
from cli.table import CLUSTER_COMMANDS, find
from tests.docs.commands_page import PAGE, counterparts


def test_every_command_is_in_the_table_of_commands() -> None:
    table = PAGE.read_text().partition("\n## ")[0]
    names = [*CLUSTER_COMMANDS, "profile"]
    assert not [name for name in names if f"`odradek {name}`" not in table and f"`{name}`" not in table]


def test_our_side_of_each_pair_has_options_that_there_are() -> None:
    rows = counterparts()
    assert len(rows) > 40
    for row in rows:
        words = shlex.split(row.odradek.rpartition("odradek ")[2])
        command = find(words)
        assert command is not None, row.odradek
        name, entry, rest = command
        assert declare_command(name, entry).parser.parse_args(rest).action is not None


def row_of(flag: Flag) -> str:
    """Returns a flag's row in the table of flags."""
    value = flag.metavar or "\\|".join(flag.choices)
    names = [*flag.names[:-1], f"{flag.names[-1]} {value}".rstrip()]
    return f"| {', '.join(f'`{name}`' for name in names)} | {flag.help} |"


def test_the_table_of_flags_is_that_of_the_parsers() -> None:
    section = PAGE.read_text().partition("## Flags")[2].partition("\n\nA time is")[0]
    assert section.splitlines()[6:] == [row_of(flag) for flag in FLAGS]
