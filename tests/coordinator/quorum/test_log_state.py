"""Tests what the raft core knows of its log."""

from __future__ import annotations

from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.log_state import LogState
from coordinator.quorum.ready import RecoveredLog

SNAPSHOT = SnapshotId(14, 1)


def test_records_of_a_snapshots_epoch_continue_it_after_a_truncation() -> None:
    log = LogState(RecoveredLog(14, 16, ((1, 14),), (SNAPSHOT,)))
    log.truncate(14)
    log.append([], 20)
    assert (log.end, log.check(20, 1)) == (LogEnd(20, 1), None)


def test_records_of_a_snapshots_epoch_continue_it_after_a_restart() -> None:
    log = LogState(RecoveredLog(14, 14, (), (SNAPSHOT,)))
    log.append([], 20)
    assert log.end == LogEnd(20, 1)


def test_a_new_quorums_snapshot_has_no_epoch() -> None:
    log = LogState(RecoveredLog(0, 0, (), (SnapshotId(0, 0),)))
    log.append([LogEnd(0, 1)], 3)
    assert log.end == LogEnd(3, 1)
