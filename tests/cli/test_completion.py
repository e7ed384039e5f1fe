"""Completion, and what a command imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.completion import candidates
from cli.table import CLUSTER_COMMANDS, Command

LOOP = {"asyncio", "ssl", "concurrent"}
WITH_A_LOOP = {"produce", "consume", "doctor", "top"}
"""Commands whose actions all send several requests at once."""
SLOW = {"uvloop", "storage", "coordinator", "lz4", "zstandard", "cramjam", "xxhash", "tomllib", "difflib"}


@pytest.mark.parametrize(("name", "command"), CLUSTER_COMMANDS.items())
def test_a_command_imports_nothing_that_is_slow_to(name: str, command: Command) -> None:
    program = f"import sys; import cli.main, commands.main, {command.module}; print(*sys.modules)"
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
    assert {"describe", "quorum", "--brokers"} <= set(candidates(["cluster"]))
    assert {"--listen", "--set"} <= set(candidates(["run"]))
    assert {"dump", "verify"} <= set(candidates(["log"]))
    assert "--from" in candidates(["log", "dump"])
    assert {"generate", "load"} <= set(candidates(["pipeline"]))
    assert "--topic" in candidates(["pipeline", "load"])
    assert "--topics" not in candidates(["pipeline", "load"])
    assert {"bash", "zsh", "fish"} <= set(candidates(["completion"]))
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
    assert "client.blocking" in loaded
    assert not {"shutil", "encodings.idna", "asyncio", "ssl"}.intersection(loaded)
