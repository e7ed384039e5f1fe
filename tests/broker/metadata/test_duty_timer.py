"""The controller's duties over a disk that has no room for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from broker.metadata import duty_timer
from broker.metadata.duty_timer import DutyTimer
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.duties import RETRIES, Duties
from coordinator.cluster.options import ClusterOptions
from coordinator.cluster.record import MetadataRecord
from storage.failure import LogDirFull
from tests.clock import ManualClock
from tests.coordinator.cluster import given

SESSION_MS: Final = 8_000
CHECK_MS: Final = SESSION_MS // 8
CONTROLLER: Final = 9
OPTIONS: Final = ClusterOptions(
    node_id=CONTROLLER,
    has_broker=False,
    broker_session_timeout_ms=SESSION_MS,
    metadata_max_idle_interval_ms=0,
    unclean_leader_election_interval_ms=0,
    auto_leader_rebalance_enable=False,
)


class Log:
    """The lines of the log, as far as they are of interest."""

    def __init__(self) -> None:
        self.failures: list[object] = []

    def error(self, _: str, **fields: object) -> None:
        self.failures.append(fields["failures"])

    def info(self, _: str, **__: object) -> None: ...


class Controller:
    """A controller that has not heard of its one broker since it began, and whose disk is full or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines = Log()
        monkeypatch.setattr(duty_timer, "log", self.lines)
        self.clock = ManualClock()
        self.image = given.image()
        self.is_full = True
        self.tries_ms: list[int] = []
        sessions = BrokerSessions(SESSION_MS, OPTIONS.own_broker_id)
        self.duties = Duties(OPTIONS, given.RULES, sessions, self.clock.now_ms)
        self.begun_ms = self.clock.now_ms()
        sessions.begin(self.image, self.begun_ms)
        self.timer = DutyTimer(self.duties, self.clock, lambda: self.image, self.write)
        self.timer.begin()

    def write(self, records: Sequence[MetadataRecord]) -> None:
        self.tries_ms.append(self.clock.now_ms() - self.begun_ms)
        if self.is_full:
            raise LogDirFull("/data", "no room")
        given.apply(self.image, records)

    def pass_time(self, ms: int) -> None:
        """Lets time pass, from timer to timer."""
        self.clock.advance(ms)


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    return Controller(monkeypatch)


def test_a_duty_that_fails_is_tried_again_soon_and_then_at_its_period(controller: Controller) -> None:
    controller.pass_time(SESSION_MS + 6 * CHECK_MS)
    first = controller.tries_ms[0]
    pauses = [after - before for before, after in zip(controller.tries_ms, controller.tries_ms[1:], strict=False)]
    assert SESSION_MS < first <= SESSION_MS + CHECK_MS
    assert pauses == [100, 200, 400, 800, CHECK_MS, CHECK_MS, CHECK_MS]


def test_who_is_gone_is_fenced_within_a_period_once_there_is_room(controller: Controller) -> None:
    controller.pass_time(SESSION_MS + 5 * CHECK_MS)
    assert not controller.image.brokers[given.NODE].fenced
    controller.is_full = False
    controller.pass_time(CHECK_MS)
    assert controller.image.brokers[given.NODE].fenced


def test_a_disk_that_stays_full_does_not_fill_the_log(controller: Controller) -> None:
    controller.pass_time(SESSION_MS + 100 * CHECK_MS)
    assert controller.lines.failures == [1, 2, 4, 8, 16, 32, 64]


def test_the_next_failure_is_the_first_again(controller: Controller) -> None:
    (duty,) = (one for one in controller.duties._duties if one.name == "fence a stale broker")
    assert [controller.duties.failed(duty, 0) for _ in range(3)] == [1, 2, 3]
    controller.duties.done(duty, 0, more=False)
    assert controller.duties.failed(duty, 0) == 1


def test_no_duty_waits_longer_than_a_minute(controller: Controller) -> None:
    rare = controller.duties._duties[0]._replace(period_ms=3_600_000)
    for _ in range(2_000):
        controller.duties.failed(rare, 0)
    assert controller.duties._due[rare.name] == RETRIES.max_ms
