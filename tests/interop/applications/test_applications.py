"""Applications of many frameworks, which are killed, and whose broker is killed; `make test-applications`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.applications.figures import AT_LEAST_ONCE, EXACTLY_ONCE, Figures
from tests.interop.applications.table import APPLICATIONS, Application
from tests.interop.applications.topics import Topics, counted, faults
from tests.interop.brokers import ALONE, Broker
from tests.interop.processes import Server

RECORDS = 2_000
"""Records between two kills."""
TIMEOUT_S = 180
"""Time for RECORDS records, with a rebalance and the end of a transaction."""


@pytest.fixture
def properties() -> dict[str, str]:
    return {**ALONE, "group.initial.rebalance.delay.ms": "500"}


class Running(Server):
    """An application as a process. It starts again if its client gives up."""

    def __init__(self, application: Application, folder: Path, bootstrap: str) -> None:
        super().__init__(application.name, folder / "application.log")
        folder.mkdir()
        self._command = [*application.command(), bootstrap, str(folder / "state"), Topics.SOURCE, Topics.TARGET]

    def start(self) -> None:
        self.launch(self._command, "", TIMEOUT_S)

    def is_kept_running(self) -> bool:
        """Starts the application again if it has ended, as a supervisor does. Returns True."""
        if not self.is_running:
            self.kill9()
            self.start()
        return True


@pytest.mark.applications
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_no_record_is_lost_when_the_application_and_the_broker_are_killed(
    application: Application, broker: Broker, tmp_path: Path, keep: Callable[[Figures], None]
) -> None:
    topics = Topics(broker.bootstrap)
    running = Running(application, tmp_path / "application", broker.bootstrap)
    running.start()

    def reached(count: int) -> bool:
        return running.is_kept_running() and len(set(topics.received)) >= count

    topics.send(RECORDS)
    topics.read_until(lambda: reached(RECORDS // 4), TIMEOUT_S)
    running.kill9()
    topics.send(RECORDS)
    running.start()
    topics.read_until(lambda: reached(RECORDS + RECORDS // 4), TIMEOUT_S)
    broker.kill9()
    broker.restart()
    topics.send(RECORDS)
    topics.read_until(lambda: reached(3 * RECORDS), TIMEOUT_S)
    topics.read_the_rest()
    expected = counted(topics.sent) if application.counts else topics.sent
    assert faults(expected, topics.received, exactly_once=application.exactly_once) == []
    output = "count per key" if application.counts else "copy"
    guarantee = EXACTLY_ONCE if application.exactly_once else AT_LEAST_ONCE
    keep(Figures(application.name, output, guarantee, len(expected), len(topics.received), "program, broker"))
    running.forget()
    topics.close()


SENT = [("a", "1"), ("b", "2"), ("a", "3")]


def test_an_output_may_have_doubles_but_no_gaps_without_exactly_once() -> None:
    assert faults(SENT, [*SENT, ("b", "2")], exactly_once=False) == []
    assert faults(SENT, SENT[:2], exactly_once=False) == ["1 records are lost: [('a', '3')]"]
    assert len(faults(SENT, [*SENT, ("c", "4")], exactly_once=False)) == 1


def test_doubles_and_a_wrong_order_are_faults_of_exactly_once() -> None:
    assert faults(SENT, SENT, exactly_once=True) == []
    assert faults(SENT, [*SENT, ("b", "2")], exactly_once=True) == ["1 records are doubled: [('b', '2')]"]
    assert faults(SENT, SENT[::-1], exactly_once=True) == ["the records of a are out of order"]


def test_a_counting_application_counts_per_key() -> None:
    assert counted(SENT) == [("a", "1"), ("b", "1"), ("a", "2")]
