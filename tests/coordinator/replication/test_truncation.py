"""Tests the offset to which a follower's log is truncated (KIP-101, KIP-279, KIP-595)."""

from __future__ import annotations

import pytest

from coordinator.replication.truncation import Correction, CutTo, RestartAt, Resume, diverging_offset, out_of_range
from storage.epochs import EpochEnd
from tests.coordinator.replication.leading import FollowerLogStub


@pytest.mark.parametrize(
    ("epochs", "diverging", "expected"),
    [
        pytest.param([(1, 0), (3, 10)], (3, 15), 15, id="the leader's last epoch ends earlier than here"),
        pytest.param([(1, 0), (3, 10)], (1, 12), 10, id="the leader has more of an epoch that ended here"),
        pytest.param([(1, 0), (3, 10)], (1, 7), 7, id="the leader has less of an epoch that ended here"),
        pytest.param(
            [(1, 0), (3, 10)], (2, 14), 10, id="the leader's epoch is not here: asked again from the one before"
        ),
        pytest.param([(3, 10)], (2, 8), 8, id="no epoch here is so old"),
        pytest.param([(1, 0), (3, 10)], (4, 17), 17, id="the leader's epoch is newer than all here"),
        pytest.param([], (4, 17), 17, id="there are no epochs here"),
        pytest.param([(1, 0), (3, 20)], (1, 30), 20, id="an epoch that began here without a record goes (KAFKA-7415)"),
    ],
)
def test_a_diverging_log_is_cut_where_both_agree(
    epochs: list[tuple[int, int]], diverging: tuple[int, int], expected: int
) -> None:
    assert diverging_offset(FollowerLogStub(20, epochs), EpochEnd(*diverging)) == expected


@pytest.mark.parametrize(
    ("leader", "expected"),
    [
        pytest.param((None, 15), CutTo(15), id="the leader ends earlier, after an unclean election"),
        pytest.param((None, 20), None, id="its start has to be known"),
        pytest.param((30, 40), RestartAt(30), id="the leader begins later"),
        pytest.param((20, 40), Resume(), id="the leader begins where this log ends"),
        pytest.param((0, 40), Resume(), id="the leader has grown meanwhile"),
    ],
)
def test_an_offset_that_the_leader_does_not_have(leader: tuple[int | None, int], expected: Correction | None) -> None:
    assert out_of_range(FollowerLogStub(20), *leader) == expected
