"""Tests the command that `make run` runs, and the builds that may be removed."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import wheel
from bench.jars import ROOT


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an empty cache, into which nothing is built."""
    monkeypatch.setattr(wheel, "CACHE", tmp_path)
    monkeypatch.setattr(wheel, "LOG", ROOT / ".cache" / "wheel.log")
    monkeypatch.setattr(wheel, "folder", lambda: tmp_path / "odradek-now")
    return tmp_path


def test_the_first_start_is_the_trees_own_and_says_so(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    builds: list[None] = []
    monkeypatch.setattr(wheel, "build_beside", lambda: builds.append(None))
    assert Path(wheel.command_to_run()).name == "odradek"
    assert builds == [None]
    assert "being built in the background" in capsys.readouterr().err


def test_a_later_start_is_the_wheels(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "build_beside", lambda: pytest.fail("there is nothing to build"))
    wheel.launcher().parent.mkdir(parents=True)
    wheel.launcher().touch()
    assert wheel.command_to_run() == str(wheel.launcher())


def test_a_build_from_which_a_broker_runs_stays(cache: Path) -> None:
    used, unused = cache / "odradek-used", cache / "odradek-unused"
    for build in (used, unused):
        build.mkdir()
    with (used / wheel.IN_USE).open("a") as broker:
        fcntl.flock(broker, fcntl.LOCK_SH)
        for build in (used, unused):
            wheel.remove_unless_in_use(build)
        assert [build.exists() for build in (used, unused)] == [True, False]
    wheel.remove_unless_in_use(used)
    assert not used.exists()


def test_one_build_at_a_time_runs_in_the_background(cache: Path) -> None:
    with wheel.sole_builder() as first, wheel.sole_builder() as second:
        assert (first, second) == (True, False)


def test_a_revision_that_there_is_not_is_an_error() -> None:
    with pytest.raises(wheel.NotBuilt, match="no such revision"):
        wheel.program_at("no-such-revision")


@pytest.fixture
def runs_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Returns a function that sets BROKER_PYTHON."""

    def choose(python: Path) -> None:
        monkeypatch.setenv("BROKER_PYTHON", str(python))
        wheel.interpreter.cache_clear()

    yield choose
    wheel.interpreter.cache_clear()


def test_another_interpreter_has_an_installation_of_its_own_with_the_dependencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_on: Callable[[Path], None]
) -> None:
    usual = wheel.command_in(tmp_path)
    runs_on(Path(sys.executable).resolve())  # the same without this environment's packages
    command = wheel.command_in(tmp_path)
    assert command.parent != usual.parent

    def pip(verb: str, option: str, target: str, file: str) -> None:
        package = Path(target, "odradek")
        package.mkdir(parents=True)
        package.joinpath("__init__.py").write_text("def main():\n    import uvloop\n    return 7\n")

    monkeypatch.setattr(wheel, "pip", pip)
    wheel.install(tmp_path / "a.whl", command)
    assert command.read_text().startswith(f"#!{Path(sys.executable).resolve()} -P\n")
    assert subprocess.run([command], check=False).returncode == 7


def test_an_interpreter_of_another_version_is_an_error(tmp_path: Path, runs_on: Callable[[Path], None]) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho cpython-39\n")
    python.chmod(0o755)
    runs_on(python)
    with pytest.raises(wheel.NotBuilt, match=f"python is cpython-39, and the wheel is for {wheel.TAG}"):
        wheel.launcher()


def test_an_interpreter_that_does_not_run_is_an_error(tmp_path: Path, runs_on: Callable[[Path], None]) -> None:
    runs_on(tmp_path / "nothing")
    with pytest.raises(wheel.NotBuilt, match="nothing does not run: "):
        wheel.interpreter()
