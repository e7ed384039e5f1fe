"""Celery's tasks and rsyslog's lines, whose broker is killed; `make test-applications`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.applications.connect import Reader, until
from tests.interop.applications.figures import AT_LEAST_ONCE, Figures
from tests.interop.applications.table import PROGRAMS, python
from tests.interop.brokers import ALONE, Broker
from tests.interop.processes import Server, run

pytestmark = [pytest.mark.applications, pytest.mark.timeout(900)]

TASKS = 300
LINES = 20_000
READY_S = 60


@pytest.fixture
def properties() -> dict[str, str]:
    return {**ALONE, "group.initial.rebalance.delay.ms": "0"}


class Worker(Server):
    """A worker of Celery, which appends the number of each task to a file."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__("celery", folder / "celery.log")
        self._file = folder / "done.txt"
        self._file.touch()
        self._command = [python("newer"), str(PROGRAMS / "celery_tasks.py"), bootstrap, str(self._file)]

    def start(self) -> None:
        self.launch([*self._command, "work"], "", READY_S)

    def send(self, begin: int, end: int) -> None:
        run([*self._command, str(begin), str(end)], timeout_s=READY_S)

    def done(self) -> list[int]:
        """Returns the numbers of the tasks, in the order in which they were carried out."""
        return list(map(int, self._file.read_text().split()))

    def has_done(self, count: int) -> bool:
        """Returns True if so many different tasks were carried out. Starts the worker again if it has ended."""
        if not self.is_running:
            self.kill9()
            self.start()
        return len(set(self.done())) >= count


def test_no_task_of_celery_is_lost_when_the_worker_and_the_broker_are_killed(
    broker: Broker, tmp_path: Path, keep: Callable[[Figures], None]
) -> None:
    worker = Worker(tmp_path, broker.bootstrap)
    worker.start()
    worker.send(0, TASKS)
    until(lambda: worker.has_done(TASKS // 4), "a part of the tasks")
    worker.kill9()
    worker.send(TASKS, 2 * TASKS)
    worker.start()
    until(lambda: worker.has_done(TASKS + TASKS // 4), "a part of the second tasks")
    broker.kill9()
    broker.restart()
    worker.send(2 * TASKS, 3 * TASKS)
    until(lambda: worker.has_done(3 * TASKS), "all tasks")
    done = worker.done()
    assert set(done) == set(range(3 * TASKS))
    keep(Figures("Celery", "tasks carried out", AT_LEAST_ONCE, 3 * TASKS, len(done), "worker, broker"))
    worker.forget()


class Rsyslog(Server):
    """rsyslog, from Debian's package rsyslog-kafka. Sends the lines of a file to a topic."""

    def __init__(self, folder: Path, bootstrap: str, lines: Path) -> None:
        super().__init__("rsyslog", folder / "rsyslog.log")
        work = folder / "rsyslog"
        work.mkdir()
        settings = folder / "rsyslog.conf"
        settings.write_text(
            f"""global(workDirectory="{work}")
module(load="imfile" mode="polling" pollingInterval="1")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
input(type="imfile" file="{lines}" tag="lines")
action(type="omkafka" broker=["{bootstrap}"] topic="lines" template="line" partitions.auto="off"
       confParam=["enable.idempotence=true"] resubmitOnFailure="on" keepFailedMessages="on"
       failedMsgFile="{work / "failed"}" action.resumeRetryCount="-1" action.resumeInterval="1")
"""
        )
        self._command = ["rsyslogd", "-n", "-f", str(settings), "-i", str(work / "pid")]

    def start(self) -> None:
        self.launch(self._command, "", READY_S)


def test_no_line_of_rsyslog_is_lost_when_the_broker_is_killed(
    broker: Broker, tmp_path: Path, keep: Callable[[Figures], None]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.touch()

    def append(begin: int) -> None:
        with lines.open("a") as file:
            file.writelines(f"line {number}\n" for number in range(begin, begin + LINES))

    rsyslog = Rsyslog(tmp_path, broker.bootstrap, lines)
    rsyslog.start()
    append(0)
    reader = Reader(broker.bootstrap, "lines")
    until(lambda: reader.has(LINES // 4), "a part of the lines")
    broker.kill9()
    append(LINES)
    broker.restart()
    append(2 * LINES)
    until(lambda: reader.has(3 * LINES), "all lines")
    assert set(reader.values) == {f"line {number}" for number in range(3 * LINES)}
    keep(Figures("rsyslog", "lines of a file", AT_LEAST_ONCE, 3 * LINES, len(reader.values), "broker"))
    rsyslog.forget()
