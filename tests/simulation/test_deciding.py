"""Tests that a controller never cleanly elects a replica that lacks a committed record, whatever happens to its
brokers.

A failing run is its seed: `python -m tests.simulation 17 deciding`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.cluster.duties import Duties, Duty
from coordinator.cluster.partitions import change
from coordinator.cluster.partitions.alter_partition import ANY_EPOCH
from protocol.messages.alter_partition import AlterPartitionRequest
from tests.coordinator.cluster import given
from tests.simulation.deciding_world import MIN_ISR, Broker, DecidingWorld, simulate
from tests.simulation.detection import finding

STEPS = 600
SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_committed_record_is_lost_by_a_clean_election(seed: int) -> None:
    simulate(seed, STEPS)


def test_everything_that_may_happen_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(20):
        counts += simulate(seed, STEPS).counts
    assert counts.keys() >= {
        "committed",
        "elected",
        "unclean",
        "offline",
        "power",
        "killed",
        "stopped in order",
        "fence a stale broker",
        "KAFKA_STORAGE_ERROR",
        "DUPLICATE_BROKER_REGISTRATION",
        "STALE_BROKER_EPOCH",
        "isr 0",
        "isr 74",  # FENCED_LEADER_EPOCH
        "isr 95",  # INVALID_UPDATE_VERSION
        "isr 107",  # INELIGIBLE_REPLICA
    }


def is_detected(make: Callable[[int], DecidingWorld] = DecidingWorld) -> bool:
    return bool(finding(lambda seed: simulate(seed, STEPS, make), range(120)))


class AlwaysClean(DecidingWorld):
    """Brokers report a clean stop even if they may have lost records."""

    def start(self, broker: Broker) -> None:
        broker.stopped_in_order = True
        super().start(broker)


class OfAnyEpoch(DecidingWorld):
    """Leaders don't report the broker epochs of replicas, so a restarted replica can join because of fetches before its
    restart."""

    def ask(self, proposal: AlterPartitionRequest) -> None:
        for state in proposal.topics[0].partitions[0].new_isr_with_epochs:
            state.broker_epoch = ANY_EPOCH
        super().ask(proposal)


class OfAnyState(DecidingWorld):
    """Proposals for an old state of the partition claim to be for its current state."""

    def ask(self, proposal: AlterPartitionRequest) -> None:
        data = proposal.topics[0].partitions[0]
        data.leader_epoch, data.partition_epoch = self.partition.leader_epoch, self.partition.partition_epoch
        super().ask(proposal)


class AnotherMinIsr(DecidingWorld):
    """The controller and the leader use different values of min.insync.replicas."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        given.apply(self.image, [given.topic_config("orders", "min.insync.replicas", str(MIN_ISR + 1))])


@pytest.mark.parametrize("make", [AlwaysClean, OfAnyEpoch, OfAnyState, AnotherMinIsr])
def test_a_fault_is_found_out(make: Callable[[int], DecidingWorld]) -> None:
    assert is_detected(make)


def test_an_election_of_any_replica_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "_is_valid", lambda broker_id, may_lead, rules: rules.is_acceptable(broker_id))
    assert is_detected()


def test_eligible_replicas_that_outlive_their_replica_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_kafka_has_it(self: Any) -> None:
        self.elr = []
        if self.rules.elr_enabled and len(self.isr) < self.rules.min_isr:
            barred = {*self.isr, *self.target.unclean_shutdowns}
            self.elr = [one for one in dict.fromkeys((*self.partition.elr, *self.partition.isr)) if one not in barred]

    monkeypatch.setattr(change._Change, "_collect_eligible", as_kafka_has_it)
    assert is_detected()


def test_a_duty_that_waits_a_minute_after_a_failure_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def a_minute_later(self: Duties, duty: Duty, now_ms: int) -> int:
        self._due[duty.name] = now_ms + 60_000
        return 1

    monkeypatch.setattr(Duties, "failed", a_minute_later)
    assert is_detected()
