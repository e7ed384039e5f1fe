"""Seeds of the simulation of records that wait for their time and their key."""

from __future__ import annotations

import pytest

from tests.coordinator.share_partition.holdback_simulation import BY_BOTH, BY_KEY, BY_TIME, HoldbackSimulation

RULES = {"time": BY_TIME, "key": BY_KEY, "both": BY_BOTH}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(20))
def test_the_invariants_hold_after_every_step(seed: int, rules: str) -> None:
    HoldbackSimulation(seed, RULES[rules]).run(400)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_while_the_options_change(seed: int) -> None:
    HoldbackSimulation(seed, BY_BOTH, is_steady=False).run(400)
