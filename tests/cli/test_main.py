"""Tests `odradek --help`, and commands whose packages are missing."""

from __future__ import annotations

import os
import shlex
import subprocess
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


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("tpoic list", "did you mean topic?"),
        ("topic lst", "did you mean list?"),
        ("cluster descrbe", "unknown command cluster descrbe; did you mean describe?"),
        ("cluster x", "expected describe, quorum"),
        ("topic list --interal", "did you mean --internal?"),
        ("topic list --bootstrap-servers h:1", "did you mean --bootstrap?"),
        ("group reset billing orders --to-earliest", "did you mean --to?"),
        ("topic create orders -p -1", "-p/--partitions: -1: expected 1 or more"),
        ("topic create orders -r 0", "-r/--replicas: 0: expected 1 or more"),
        ("topic grow orders --by -2", "--by: -2: expected 1 or more"),
        ("consume orders -n -1", "-n/--count: -1: expected 0 or more"),
        ("topic alter orders --set retention.ms=1", "retention.ms: not a connection setting; the settings are"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(capsys: pytest.CaptureFixture[str], line: str, advice: str) -> None:
    try:
        status = main(line.split())
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["topic", "--help"], ["topic", "list", "--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_may_close_the_pipe_of_a_help(words: list[str], unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "odradek", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("redirected", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(redirected: str) -> None:
    line = f"exec {shlex.quote(sys.executable)} -m odradek topic list --help {redirected}"
    ended = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("option", ["-b", "--bootstrap", "--bootstrap-server", "--brokers"])
def test_the_bootstrap_option_has_the_names_of_other_tools(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["topic", "list", option, "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("odradek: bootstrap.servers (--bootstrap): 'nowhere'")


def test_help_of_a_command_shows_the_commands_that_begin_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cluster", "--help"])
    out = capsys.readouterr().out
    assert "  cluster describe " in out
    assert "  cluster quorum " in out


def test_a_job_without_spark_names_the_missing_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("pipeline.commands")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["pipeline", "replay", "-b", "h:1", "--store", "s", "--topic", "t"]) == 1
    assert capsys.readouterr().err.startswith("odradek: `odradek pipeline` needs pyspark")
