"""Runs replicas of one partition with elections, crashes, power losses and lost answers, from a seed.

A failing run is its seed: `make simulate SEEDS=17 WORLDS=follow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from broker.replica import following
from broker.replica.partition import Partition
from coordinator.replication import fetcher
from coordinator.replication.truncation import ReplicaLog
from protocol.messages.fetch import EpochEndOffset, FetchRequest, FetchResponse
from storage.epochs import EpochEnd
from tests.simulation import follow_node
from tests.simulation.follow_node import Node
from tests.simulation.follow_world import FollowWorld

STEPS = 300
SEEDS = range(60)
"""Seeds for about ten seconds; `make simulate WORLDS=follow` runs thousands."""
TRIES = range(60)
"""Seeds among which a planted fault is detected."""


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_are_the_same_below_the_high_watermark(seed: int) -> None:
    FollowWorld(seed).run(STEPS)


def test_everything_that_may_happen_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(20):
        world = FollowWorld(seed)
        world.run(STEPS)
        counts += world.counts
    assert {"acknowledged", "power", "lost", "session ended", "out of range", "move", "restart"} <= counts.keys()


def first_failure(make: Callable[[int], FollowWorld] = FollowWorld) -> str:
    """Returns the message of the first seed that fails."""
    for seed in TRIES:
        try:
            make(seed).run(STEPS)
        except AssertionError as error:
            return str(error)
    pytest.fail(f"{len(TRIES)} seeds did not find it")


def cut_at_the_leader_s_word(log: ReplicaLog, diverging: EpochEnd) -> int:
    return min(diverging.end_offset, log.log_end_offset)


def cut_nothing(log: ReplicaLog, _: EpochEnd) -> int:
    return log.log_end_offset


@pytest.mark.parametrize("fault", [cut_at_the_leader_s_word, cut_nothing])
def test_logs_that_are_cut_elsewhere_are_noticed(monkeypatch: pytest.MonkeyPatch, fault: object) -> None:
    monkeypatch.setattr(fetcher, "diverging_offset", fault)
    assert first_failure()


def test_a_high_watermark_beyond_the_log_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(partition: Partition, high_watermark: int, log_start_offset: int) -> None:
        following.take_watermarks(partition, high_watermark, log_start_offset)
        partition.log.update_high_watermark(max(high_watermark, partition.high_watermark))

    monkeypatch.setattr(follow_node, "take_watermarks", take)
    assert "beyond its end" in first_failure()


class Undiverging(FollowWorld):
    """KAFKA-13141: an answer doesn't report that the logs diverge."""

    def _deliver(self, node: Node, request: FetchRequest, response: FetchResponse, *, lost: bool) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.diverging_epoch = EpochEndOffset()
        super()._deliver(node, request, response, lost=lost)


def test_a_diverging_log_that_is_not_cut_is_noticed() -> None:
    assert first_failure(Undiverging)


def test_a_broker_that_lost_records_and_stays_in_sync_is_noticed() -> None:
    def forgetful(seed: int) -> FollowWorld:
        world = FollowWorld(seed)
        world.forgets_unclean_stops = True
        return world

    assert first_failure(forgetful)
