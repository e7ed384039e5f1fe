"""Runs streams groups from seeds: a task is active in one member at most, a process has it once, and every member
converges. A seed replays a run."""

from __future__ import annotations

import pytest

from tests.coordinator.group.streams.simulation import Simulation


@pytest.mark.parametrize("seed", range(30))
def test_a_task_is_active_once_at_most_and_every_member_converges(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run(120)
    simulation.settle()
    simulation.check_settled()
    simulation.kill_broker()
    simulation.settle()
    simulation.check_settled()
