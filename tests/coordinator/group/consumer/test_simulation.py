"""Runs consumer groups from seeds: a partition has at most one owner, and every member converges. A seed replays a
run."""

from __future__ import annotations

import pytest

from tests.coordinator.group.consumer.mixed_simulation import MixedSimulation
from tests.coordinator.group.consumer.simulation import Simulation

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_has_one_owner_at_most_and_every_member_converges(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run(120)
    simulation.settle()
    simulation.check_settled()
    simulation.kill_broker()
    simulation.settle()
    simulation.check_settled()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_that_changes_protocol_gives_every_partition_to_one_member(seed: int) -> None:
    simulation = MixedSimulation(seed)
    simulation.run(80)
    simulation.settle()
    simulation.check_settled()
