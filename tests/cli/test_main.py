"""Tests `odradek --help`, and commands whose packages are missing."""

from __future__ import annotations

import sys

import pytest

from cli.main import main
from cli.table import COMMANDS, JOBS


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, command in COMMANDS.items():
        assert any(line.split() == [*name.split(), *command.purpose.split()] for line in lines), name


def test_help_of_a_family_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name.split()[1]} " in out for name in JOBS)


def test_a_job_without_spark_names_the_missing_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("pipeline.commands")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["pipeline", "replay", "-b", "h:1", "--store", "s", "--topic", "t"]) == 1
    assert capsys.readouterr().err.startswith("odradek: `odradek pipeline` needs pyspark")
