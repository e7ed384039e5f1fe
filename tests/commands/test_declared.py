"""Every command as it is declared: help, examples, completion, and how much it costs to begin."""

from __future__ import annotations

import subprocess
import sys

import pytest

from commands.completion import candidates
from commands.main import declare
from commands.table import CLUSTER_COMMANDS, CLUSTER_WORDS, ClusterCommand

ALL = [*CLUSTER_COMMANDS.items(), *(("cluster", command) for command in CLUSTER_WORDS.values())]
SLOW = {"structlog", "uvloop", "storage", "coordinator", "lz4", "zstandard", "cramjam", "xxhash", "tomllib", "difflib"}


@pytest.mark.parametrize(("name", "command"), ALL)
def test_every_action_has_examples_of_itself_and_its_exit_codes(name: str, command: ClusterCommand) -> None:
    for path, parser, examples in declare(name, command).declared:
        assert examples, path
        assert any(f"odradek {path}" in example for example in examples), path
        assert "exit codes" in parser.format_help()


@pytest.mark.parametrize(("name", "command"), ALL)
def test_a_command_imports_nothing_that_is_slow_to(name: str, command: ClusterCommand) -> None:
    program = f"import sys; import commands.main, {command.module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not SLOW.intersection(loaded)


def test_completion_offers_commands_then_their_words_then_options() -> None:
    assert {"topic", "run", "cluster"} <= set(candidates([]))
    assert {"list", "create"} <= set(candidates(["topic"]))
    assert {"--replicas", "--bootstrap"} <= set(candidates(["topic", "create"]))
    assert candidates(["topic", "list", "-o"]) == ["table", "json"]
    assert "broker" in candidates(["config", "describe"])
    assert candidates(["no-such-command"]) == []
