"""Runs the simulation over seeds; a seed that fails can be replayed by its number."""

from __future__ import annotations

import pytest

from tests.coordinator.share_partition.simulation import Simulation


@pytest.mark.parametrize("seed", range(60))
def test_the_invariants_hold_after_every_step(seed: int) -> None:
    Simulation(seed).run(400)
