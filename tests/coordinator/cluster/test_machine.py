"""Tests the cluster's metadata in the engine: its duties with a disk that is full for a while, and beside decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Final

import pytest

from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.configs.rules import ConfigRules
from coordinator.cluster.decisions import DecisionState
from coordinator.cluster.duties import RETRIES, Duties, Duty
from coordinator.cluster.image import Image
from coordinator.cluster.machine import BUSY_WAIT_MS, Busy, ClusterMachine, NewBatch
from coordinator.cluster.options import ClusterOptions
from coordinator.engine.engine import Engine
from coordinator.engine.result import Result
from protocol.errors import KafkaError
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


class Controller:
    """A controller that has had no heartbeat of its only broker since it began, and whose disk may be full."""

    is_busy = False

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.is_full = True
        self.tries_ms: list[int] = []
        self.failures: list[int] = []
        self.done: list[str] = []
        self.epoch = 1
        image = given.image()
        self.end_offset = image.offset + 1
        sessions = BrokerSessions(SESSION_MS, OPTIONS.own_broker_id, lambda: self.image.offset)
        self.duties = Duties(OPTIONS, given.RULES, sessions, self.clock.now_ms)
        self.begun_ms = self.clock.now_ms()
        sessions.begin(image, self.begun_ms)
        self.duties.begin(self.begun_ms)
        self.machine = ClusterMachine(image, self, self.duties, self.state, self)
        self.engine: Engine[NewBatch] = Engine(self.clock, lambda _, error: None)
        self.engine.host("the machine", self.machine, self.append, self.when_committed, self.end_offset)

    uncommitted = ()

    @property
    def image(self) -> Image:
        return self.machine.image

    def state(self, image: Image, configs: ConfigRules, now_ms: int) -> DecisionState:
        return DecisionState(image, self.duties.sessions, OPTIONS, configs, bytes, now_ms, now_ms, lambda _: None)

    def append(self, made: Sequence[NewBatch], _: int) -> int:
        self.tries_ms.append(self.clock.now_ms() - self.begun_ms)
        if self.is_full:
            raise LogDirFull("/data", "no room")
        self.end_offset += sum(len(batch.records) for batch in made)
        return self.end_offset

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        then(None)

    def decided(self, now_ms: int) -> Result[NewBatch]:
        """Returns the decision on the due duty, which is made twice."""
        before = self.soft_state()
        first, second = (self.machine.expire(now_ms) for _ in range(2))
        assert first.records == second.records
        assert len(first.effects) == len(second.effects)
        assert self.soft_state() == before
        return first

    def soft_state(self) -> object:
        return deepcopy([vars(self.duties.sessions), self.duties._due, self.duties._idle_at, self.image.offset])

    def changed(self) -> None: ...

    def duty_done(self, duty: Duty, records: int) -> None:
        self.done.append(duty.name)

    def duty_failed(self, duty: Duty, failures: int, error: Exception) -> None:
        self.failures.append(failures)

    def pass_time(self, ms: int) -> None:
        """Advances the time, from timer to timer."""
        self.clock.advance(ms)


@pytest.fixture
def controller() -> Controller:
    return Controller()


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


def test_each_duty_is_decided_twice_alike(controller: Controller) -> None:
    now_ms = controller.begun_ms + 2 * SESSION_MS
    late = controller.decided(now_ms)
    for effect in late.effects:
        effect()
    now_ms += 2 * SESSION_MS
    controller.machine.expire_failed(Busy(), now_ms - BUSY_WAIT_MS)
    fencing = controller.decided(now_ms)
    assert (late.records, len(fencing.records)) == ([], 1)


def test_a_duty_waits_while_a_decision_is_made(controller: Controller) -> None:
    controller.is_full, controller.is_busy = False, True
    controller.pass_time(SESSION_MS + 5 * CHECK_MS)
    assert controller.done == controller.failures == []
    controller.is_busy = False
    controller.pass_time(BUSY_WAIT_MS)
    assert controller.image.brokers[given.NODE].fenced


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
