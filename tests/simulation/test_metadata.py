"""Runs a node's metadata with any failures: records that were seen or answered survive, and the state is the fold of
the log.

A failing run is its seed: `python -m tests.simulation 17 metadata`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from broker.metadata.led_log import LedLog
from broker.metadata.snapshots import Snapshots
from coordinator.cluster.machine import ClusterMachine
from coordinator.cluster.snapshot import SnapshotId
from tests.simulation.detection import finding
from tests.simulation.metadata_world import simulate

STEPS = 120
SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_metadata_lives_through_anything(seed: int) -> None:
    simulate(seed, STEPS)


def test_everything_that_may_happen_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(20):
        counts += simulate(seed, STEPS).counts
    assert counts.keys() >= {
        "stop",
        "left in order",
        "kill",
        "power",
        "Crash",
        "answered",
        "refused: KAFKA_STORAGE_ERROR",
    }


def is_detected() -> bool:
    return bool(finding(lambda seed: simulate(seed, STEPS), range(40)))


def committed_before_it_is_on_the_device(patch: pytest.MonkeyPatch) -> None:
    """The fault of KAFKA-10533: a leader counts itself before it has flushed."""
    append = LedLog._append

    def too_early(self: LedLog, *arguments: object) -> int:
        end_offset = append(self, *arguments)  # type: ignore[arg-type]
        self._steps.run(self._commit(end_offset))
        return end_offset

    patch.setattr(LedLog, "_append", too_early)


def what_was_not_written_is_kept(patch: pytest.MonkeyPatch) -> None:
    """The fault of KAFKA-17608: a controller whose write failed decides on a state that no other node will ever see."""
    patch.setattr(ClusterMachine, "restore", lambda self: None)


@pytest.mark.parametrize("plant", [committed_before_it_is_on_the_device, what_was_not_written_is_kept])
def test_a_fault_of_the_log_s_leader_is_found_out(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert is_detected()


def test_a_log_that_is_cut_before_the_snapshot_is_there_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Snapshots._begin

    def cut_first(self: Snapshots) -> None:
        self._log.cut(self._log.high_watermark)
        begin(self)

    monkeypatch.setattr(Snapshots, "_begin", cut_first)
    assert is_detected()


def test_snapshots_that_go_before_a_newer_one_is_whole_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Snapshots._begin

    def delete_first(self: Snapshots) -> None:
        self._log.delete_snapshots(list[SnapshotId](self._log.snapshots()))
        begin(self)

    monkeypatch.setattr(Snapshots, "_begin", delete_first)
    assert is_detected()
