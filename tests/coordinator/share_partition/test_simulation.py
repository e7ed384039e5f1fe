"""Runs the simulation over seeds; a seed that fails can be replayed by its number."""

from __future__ import annotations

import pytest

from tests.coordinator.share_partition.world import SharePartitionWorld


@pytest.mark.parametrize("seed", range(40))
def test_what_must_hold_does(seed: int) -> None:
    SharePartitionWorld(seed).run(250)
