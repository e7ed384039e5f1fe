"""Tests how elections and commits are measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.metadata.log import Listener, RoleListener
from broker.metrics.quorum import SAMPLES, WINDOW_MS, QuorumWatch, Times
from coordinator.cluster.record import MetadataBatch
from tests.clock import ManualClock

NAME = "kafka_server_raftmetrics_election_latency"


class Log:
    """A metadata log whose role and batches a test sets."""

    leader_id = 1

    def __init__(self) -> None:
        self.commit: Listener = lambda _: None
        self.turn: Callable[[str, int], None] = lambda *_: None

    def listen(self, listener: Listener) -> None:
        self.commit = listener

    def listen_to_role(self, listener: RoleListener) -> None:
        self.turn = listener


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def measured(times: Times, clock: ManualClock) -> dict[str, float]:
    return {
        family.name.removeprefix(NAME): sample[1]
        for family in times.families(NAME, "", clock.monotonic_ms())
        for sample in family.samples
    }


def test_an_election_lasts_from_the_first_request_for_votes_until_a_leader_is_known(clock: ManualClock) -> None:
    log = Log()
    watch = QuorumWatch(log, clock)  # type: ignore[arg-type]
    for role, leader_id, took_ms in (
        ("follower", 1, 5_000),
        ("prospective", 1, 300),
        ("candidate", -1, 700),
        ("unattached", -1, 1_000),
        ("prospective", -1, 20),
        ("follower", 2, 9_000),
        ("prospective", 2, 500),
        ("leader", 3, 0),
    ):
        log.turn(role, leader_id)
        clock.advance(took_ms)
    assert measured(watch.elections, clock) == {"_avg": (2_020 + 500) / 2, "_max": 2_020}
    assert watch.leaders == 2
    clock.advance(SAMPLES * WINDOW_MS)
    assert measured(watch.elections, clock) == {}, "there was none in the last minute"


def test_the_slowest_commit_counts_for_a_minute(clock: ManualClock) -> None:
    log = Log()
    watch = QuorumWatch(log, clock)  # type: ignore[arg-type]
    for took_ms in (40, 2):
        log.commit(MetadataBatch(0, 0, 1, 70, clock.now_ms() - took_ms, ()))
        clock.advance(WINDOW_MS)
    assert measured(watch.commits, clock) == {"_avg": 2, "_max": 2}
