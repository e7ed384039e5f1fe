"""Tests the runner of simulations: its arguments, and its report of failures."""

from __future__ import annotations

import asyncio
import gc
import logging
from functools import partial

import pytest

from tests.simulation import __main__ as runner
from tests.simulation import test_log, virtual_time
from tests.simulation.faulty_disk import Crash
from tests.simulation.log_world import LogWorld


@pytest.mark.parametrize(("text", "seeds"), [("17", range(17, 18)), ("1000-1999", range(1000, 2000))])
def test_seeds_are_a_number_or_a_range(text: str, seeds: range) -> None:
    assert runner.parse_seeds(text) == seeds


@pytest.mark.parametrize("arguments", [["x"], ["9-1"], ["1-"], ["1", "nowhere"]])
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        runner.main(arguments)
    assert caught.value.code == 2
    assert "1000-1999" in (text := capsys.readouterr().err) or "range is empty" in text or "groups" in text


def test_the_log_is_a_world_and_so_are_those_of_others() -> None:
    assert {"log", "groups", "transactions", "consumer", "share_partition", "holdback"} <= runner.worlds().keys()
    assert [run.__name__ for run in runner.seeded(test_log)] == ["test_a_log_lives_through_anything"]


def test_a_failing_seed_is_printed_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: LogWorld, steps: int) -> None:
        assert self.dice.random() < 0, "planted"

    monkeypatch.setattr(LogWorld, "run", run)
    assert runner.main(["4-5", "--jobs", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("log seed 4 failed: AssertionError: planted")
    assert lines[1] == "    make simulate SEEDS=4 WORLDS=log"
    assert lines[-1].endswith("0 passed, 2 failed")


def test_without_a_failure_the_exit_code_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["3", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed\n")


def test_a_long_run_prints_its_counts_meanwhile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "PROGRESS_S", 0)
    monkeypatch.setattr(LogWorld, "run", lambda self, steps: None)
    assert runner.main(["10-50", "--jobs", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" in ")[0] for line in lines] == [
        "up to log seed 29: 20 runs of 41",
        "up to log seed 49: 40 runs of 41",
        "up to log seed 50: 41 runs of 41",
    ]


async def leave_behind(error: BaseException) -> None:
    """Ends a task by an error that no code retrieves."""

    async def fail() -> None:
        raise error

    await asyncio.wait([asyncio.ensure_future(fail())])


@pytest.mark.parametrize(("error", "lines"), [(Crash("write"), 0), (ValueError("a fault of ours"), 1)])
def test_a_planted_crash_is_no_news_and_any_other_error_is(
    error: BaseException, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    logging.disable(logging.NOTSET)  # the fixture of simulations has disabled it
    virtual_time.run(partial(leave_behind, error))
    gc.collect()
    logged = [record for record in caplog.records if record.message.startswith("Task exception was never retrieved")]
    assert len(logged) == lines
