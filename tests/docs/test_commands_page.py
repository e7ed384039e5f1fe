"""docs/commands.md names all commands, and in its table only such as there are."""

from __future__ import annotations

import shlex

from commands.main import declare
from commands.table import CLUSTER_COMMANDS, CLUSTER_WORDS, find
from tests.docs.commands_page import PAGE, counterparts


def test_every_command_is_in_the_table_of_commands() -> None:
    text = PAGE.read_text()
    missing = [name for name in CLUSTER_COMMANDS if f"`odradek {name}" not in text and f"`{name}`" not in text]
    assert not missing
    assert all(f"cluster {word}`" in text for word in CLUSTER_WORDS)


def test_our_side_of_each_pair_has_options_that_there_are() -> None:
    rows = counterparts()
    assert len(rows) > 40
    for row in rows:
        words = shlex.split(row.odradek.rpartition("odradek ")[2])
        command = find(words)
        assert command is not None, row.odradek
        name, entry, rest = command
        assert declare(name, entry).parser.parse_args(rest).action is not None
