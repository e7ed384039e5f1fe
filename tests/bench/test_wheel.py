"""Tests the command that `make run` runs, and the builds that may be removed."""

from __future__ import annotations

import fcntl
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
