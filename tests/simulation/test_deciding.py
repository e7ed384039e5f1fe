"""Tests that a controller never cleanly elects a replica that lacks a committed record, whatever happens to its
brokers.

A failing run is its seed: `python -m tests.simulation 17 deciding`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from coordinator.cluster.brokers import registration
from coordinator.cluster.duties import Duties, Duty
from coordinator.cluster.partitions import alter_partition, change
from coordinator.cluster.partitions.changes import PartitionChanges
from tests.simulation.deciding_world import simulate
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


def is_detected() -> bool:
    return bool(finding(lambda seed: simulate(seed, STEPS), range(120)))


def test_brokers_that_may_have_lost_records_and_stay_eligible_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = registration._last_incarnation_gone
    monkeypatch.setattr(
        registration,
        "_last_incarnation_gone",
        lambda image, broker_id, configs, *, clean: gone(image, broker_id, configs, clean=True),
    )
    assert is_detected()


def test_replicas_that_are_let_in_by_an_earlier_epoch_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def any_epoch(image: Any, replica: Any) -> bool:
        broker = image.brokers.get(replica.broker_id)
        return broker is not None and broker.active

    monkeypatch.setattr(alter_partition, "_is_eligible", any_epoch)
    assert is_detected()


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


def test_eligibility_that_ignores_min_isr_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    of_topic = PartitionChanges._of_topic
    monkeypatch.setattr(PartitionChanges, "_of_topic", lambda self, topic: (3, of_topic(self, topic)[1]))
    assert is_detected()


def test_a_duty_that_waits_a_minute_after_a_failure_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def a_minute_later(self: Duties, duty: Duty, now_ms: int) -> int:
        self._due[duty.name] = now_ms + 60_000
        return 1

    monkeypatch.setattr(Duties, "failed", a_minute_later)
    assert is_detected()


def test_a_change_of_a_state_that_is_over_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = alter_partition._problems

    def without_epochs(image: Any, leader_id: int, partition: Any, proposed: Any) -> Any:
        current = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
        for name, epoch in current.items():
            setattr(proposed, name, epoch)
        return problems(image, leader_id, partition, proposed)

    monkeypatch.setattr(alter_partition, "_problems", without_epochs)
    assert is_detected()
