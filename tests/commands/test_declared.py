"""Every command as it is declared: help, examples, completion, and how much it costs to begin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.completion import candidates
from commands.main import declare
from commands.table import CLUSTER_COMMANDS, CLUSTER_WORDS, ClusterCommand

ALL = [*CLUSTER_COMMANDS.items(), *(("cluster", command) for command in CLUSTER_WORDS.values())]
LOOP = {"asyncio", "ssl", "concurrent"}
WITH_A_LOOP = {"produce", "consume", "doctor", "top"}
"""Commands all of whose actions do several things at once."""
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
    if name not in WITH_A_LOOP:
        assert not LOOP.intersection(loaded)


def test_completion_offers_commands_then_their_words_then_options() -> None:
    assert {"topic", "run", "cluster"} <= set(candidates([]))
    assert {"list", "create"} <= set(candidates(["topic"]))
    assert {"--replicas", "--bootstrap"} <= set(candidates(["topic", "create"]))
    assert candidates(["topic", "list", "-o"]) == ["table", "json"]
    assert "broker" in candidates(["config", "describe"])
    assert {"describe", "quorum"} == set(candidates(["cluster"]))
    assert candidates(["completion"]) == ["bash", "zsh", "fish"]
    assert candidates(["no-such-command"]) == []


def test_completion_offers_the_names_of_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "profiles.toml"
    monkeypatch.setenv("ODRADEK_PROFILES", str(file))
    assert candidates(["topic", "list", "--profile"]) == []
    file.write_text('default = "here"\n[here]\n[there]\n')
    assert candidates(["topic", "list", "--profile"]) == ["here", "there"]
    file.write_text("[broken")
    assert candidates(["topic", "list", "--profile"]) == []


BASH = """
eval "$(odradek completion bash)"
COMP_WORDS=(odradek topic cr) COMP_CWORD=2
_odradek
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_bash_completes_a_word() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", BASH], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("create\n", "")


def test_a_plain_command_imports_nothing_for_the_width_of_help_or_for_international_names() -> None:
    program = "import sys; sys.argv = ['odradek', 'topic', 'list', '-b', 'localhost:1']; import odradek; odradek.main()"
    program += "; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "commands.client.blocking" in loaded
    assert not {"shutil", "encodings.idna", "asyncio", "ssl"}.intersection(loaded)
