"""Tests that processes are kept running, and stopped in order. Scripts stand for brokers."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import SystemClock
from programs.cluster import supervisor
from programs.cluster.plan import NodePlan
from programs.cluster.process import ChildProcess, describe_status, start_process
from programs.cluster.supervisor import Pauses, Supervisor
from protocol.backoff import Backoff
from tests.log_lines import Line, log_lines
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
SERVES = """
import signal, sys
name, journal = sys.argv[1:]
def stop(*_):
    with open(journal, "a") as file:
        file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
sys.stderr.write("a line\\nand ")
sys.stderr.write("another")
sys.stderr.flush()
print("ready 127.0.0.1:" + str(len(name)), flush=True)
while True:
    signal.pause()
"""
DEAF = SERVES.replace("signal.SIGTERM, stop", "signal.SIGTERM, signal.SIG_IGN")
FAILS = "import sys; sys.stderr.write('no such option\\n'); sys.exit(2)"
FAST = Pauses(Backoff(initial_ms=20, max_ms=80), steady_ms=60_000, stop_within_s=30)
SOON_S = 30


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[Line]]:
    """Returns the lines that the supervisor itself logged."""
    lines: list[Line] = []
    with log_lines(lines.append):
        yield lines


def fields_of(lines: list[Line], event: str) -> list[dict[str, object]]:
    return [line.fields for line in lines if line.event == event]


class Cluster:
    """A supervisor that runs scripts, and its observed output."""

    def __init__(self, folder: Path, scripts: Mapping[str, str], pauses: Pauses) -> None:
        self.folder = folder
        self.scripts = dict(scripts)
        self.started: list[ChildProcess] = []
        self.lines: list[tuple[str, bytes]] = []
        plans = [NodePlan(name, str(folder / name), {}) for name in scripts]
        self.supervisor = Supervisor(plans, self.start, SystemClock(), lambda: 0.5, pauses)

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    @property
    def stopped(self) -> list[str]:
        """Returns the names of the processes that got a signal to stop, in order."""
        return self.journal.read_text().split() if self.journal.exists() else []

    async def start(self, plan: NodePlan) -> ChildProcess:
        command = [sys.executable, "-S", "-c", self.scripts[plan.name], plan.name, str(self.journal)]
        self.started.append(
            await start_process(plan.name, command, os.environ, lambda name, line: self.lines.append((name, line)))
        )
        return self.started[-1]

    def of(self, name: str) -> list[ChildProcess]:
        return [process for process in self.started if process.name == name]

    async def ready(self, capsys: pytest.CaptureFixture[str]) -> str:
        """Returns the ready line."""
        out = ""

        def is_there() -> bool:
            nonlocal out
            out += capsys.readouterr().out
            return out.endswith("\n")

        await until(is_there)
        return out


@asynccontextmanager
async def running(
    folder: Path, scripts: Mapping[str, str], pauses: Pauses = FAST
) -> AsyncIterator[tuple[Cluster, asyncio.Task[int]]]:
    cluster = Cluster(folder, scripts, pauses)
    task = asyncio.create_task(cluster.supervisor.run())
    try:
        yield cluster, task
    finally:
        for _ in range(2):
            cluster.supervisor.signalled(signal.SIGTERM)
        async with asyncio.timeout(SOON_S):
            await task


async def test_all_are_ready_in_one_line_and_stop_the_controller_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path, dict.fromkeys(("controller", "broker-1", "broker-22"), SERVES)) as (cluster, task):
        assert await cluster.ready(capsys) == "ready 127.0.0.1:8,127.0.0.1:9\n"
        cluster.supervisor.signalled(signal.SIGINT)
        assert await task == 0
        *brokers, last = cluster.stopped
        assert sorted(brokers) == ["broker-1", "broker-22"]
        assert last == "controller"
        assert [line for name, line in cluster.lines if name == "broker-1"] == [b"a line", b"and another"]


async def test_a_process_that_dies_is_started_again_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], logged: list[Line]
) -> None:
    async with running(tmp_path, dict.fromkeys(("controller", "broker-1"), SERVES)) as (cluster, task):
        await cluster.ready(capsys)
        cluster.of("broker-1")[0].signal(signal.SIGKILL)
        await until(lambda: len(cluster.of("broker-1")) == 2)
        await cluster.of("broker-1")[1].address
        assert len(cluster.of("controller")) == 1
        (fields,) = fields_of(logged, "process ended; starting it again")
        assert fields == {"process": "broker-1", "reason": "killed by SIGKILL", "after_ms": 20}
        assert fields_of(logged, "process is ready again") == [{"process": "broker-1", "address": "127.0.0.1:8"}]
        cluster.supervisor.signalled(signal.SIGTERM)
        assert await task == 0


async def test_what_dies_again_and_again_is_waited_for_longer(tmp_path: Path) -> None:
    scripts = {"controller": "import os; os.kill(os.getpid(), 9)"}
    pauses = FAST._replace(restarts=Backoff(initial_ms=10, max_ms=60_000, jitter=0))
    async with running(tmp_path, scripts, pauses) as (cluster, task):
        clock = SystemClock()
        await until(lambda: len(cluster.started) == 2)
        began_ms = clock.monotonic_ms()
        await until(lambda: len(cluster.started) == 6)
        assert clock.monotonic_ms() - began_ms >= 20 + 40 + 80 + 160
        cluster.supervisor.signalled(signal.SIGTERM)
        assert await task == 0


async def test_a_signal_ends_the_pause_before_a_start(tmp_path: Path) -> None:
    pauses = FAST._replace(restarts=Backoff(initial_ms=600_000, max_ms=600_000))
    async with running(tmp_path, {"controller": "import os; os.kill(os.getpid(), 9)"}, pauses) as (cluster, task):
        await until(lambda: len(cluster.started) == 1)
        await cluster.started[0].ended()
        cluster.supervisor.signalled(signal.SIGTERM)
        async with asyncio.timeout(SOON_S):
            assert await task == 0


async def test_a_process_that_cannot_start_ends_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path, {"controller": SERVES, "broker-1": FAILS}) as (cluster, task):
        assert await task == 1
        assert ("broker-1", b"no such option") in cluster.lines
        assert len(cluster.of("broker-1")) == 1
    assert capsys.readouterr().out == ""


async def test_once_it_was_ready_a_cluster_outlives_a_process_that_cannot_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path, dict.fromkeys(("controller", "broker-1"), SERVES)) as (cluster, task):
        await cluster.ready(capsys)
        cluster.scripts["broker-1"] = FAILS
        cluster.of("broker-1")[0].signal(signal.SIGKILL)
        await until(lambda: len(cluster.of("broker-1")) == 3)
        cluster.scripts["broker-1"] = SERVES
        await until(lambda: cluster.of("broker-1")[-1].address.done())
        assert not task.done()


async def test_a_second_signal_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path, dict.fromkeys(("controller", "broker-1"), DEAF)) as (cluster, task):
        await cluster.ready(capsys)
        cluster.supervisor.signalled(signal.SIGTERM)
        await asyncio.sleep(0.05)
        assert not task.done()
        cluster.supervisor.signalled(signal.SIGTERM)
        async with asyncio.timeout(SOON_S):
            assert await task == 0
        assert cluster.stopped == []


async def test_a_process_that_does_not_stop_in_time_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses = FAST._replace(stop_within_s=2)
    async with running(tmp_path, {"controller": SERVES, "broker-1": DEAF}, pauses) as (cluster, task):
        await cluster.ready(capsys)
        cluster.supervisor.signalled(signal.SIGTERM)
        assert await task == 0
        assert cluster.stopped == ["controller"]


async def test_a_fault_of_ours_ends_the_cluster_and_not_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path, dict.fromkeys(("controller", "broker-1"), SERVES), FAST)
    task = asyncio.create_task(cluster.supervisor.run())
    await cluster.ready(capsys)
    monkeypatch.setattr(supervisor, "describe_status", lambda status: 1 / 0)
    cluster.of("broker-1")[0].signal(signal.SIGKILL)
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(SOON_S):
            await task
    assert cluster.stopped == ["controller"]


async def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def gone(line: Line) -> None:
        if line.level == "warning":
            raise BrokenPipeError

    async with running(tmp_path, dict.fromkeys(("controller", "broker-1"), SERVES)) as (cluster, task):
        await cluster.ready(capsys)
        with log_lines(gone):
            cluster.of("broker-1")[0].signal(signal.SIGKILL)
            await until(lambda: len(cluster.of("broker-1")) == 2)
        assert not task.done()


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def start(plan: NodePlan) -> ChildProcess:
        return await start_process(plan.name, ["/nowhere/odradek"], os.environ, lambda name, line: None)

    plans = [NodePlan("controller", str(tmp_path), {})]
    assert await Supervisor(plans, start, SystemClock(), lambda: 0.5, FAST).run() == 1


async def test_a_line_without_an_end_goes_out_in_pieces(tmp_path: Path) -> None:
    lines: list[bytes] = []
    script = "import sys; sys.stderr.write('x' * (5 << 20) + '\\nlast')"
    command = [sys.executable, "-S", "-c", script]
    process = await start_process("a", command, os.environ, lambda name, line: lines.append(line))
    assert await process.ended() == 0
    assert lines[-1] == b"last"
    assert len(lines) > 4
    assert sum(map(len, lines)) == (5 << 20) + 4


def test_how_a_process_ended_is_said_in_words() -> None:
    assert describe_status(3) == "ended with status 3"
    assert describe_status(-9) == "killed by SIGKILL"
    assert describe_status(-63) == "killed by signal 63"


ORPHANS = """
import asyncio, os, sys
from programs.cluster.process import start_process

async def main():
    script = "import time; time.sleep(600)"  # a process that lives until it is killed
    process = await start_process("a", [sys.executable, "-S", "-c", script], os.environ, print)
    print(process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_who_is_killed_leaves_no_orphans() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHANS], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        descriptor = os.pidfd_open(pid)
        parent.kill()
        parent.wait()
    try:
        assert select.select([descriptor], [], [], SOON_S)[0], f"process {pid} outlives its parent"
    finally:
        os.close(descriptor)
