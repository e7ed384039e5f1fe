"""Runs brokers that publish one cluster in ZooKeeper, from a seed: a new active broker removes nothing that its image
doesn't have yet.

A failing run is its seed: `make simulate SEEDS=17 WORLDS=publishers`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from programs.zookeeper.facade import Facade
from tests.simulation import virtual_time
from tests.simulation.publishers_world import PublishersWorld

SEEDS = range(10)
TRIES = range(40)
"""Seeds among which a planted fault is detected."""


def run(seed: int) -> Counter[str]:
    async def simulate() -> Counter[str]:
        world = PublishersWorld(seed)
        await world.run()
        return world.ensemble.counts

    return virtual_time.run(simulate)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_topic_comes_once_and_goes_once(seed: int) -> None:
    run(seed)


def test_everything_that_may_happen_happens() -> None:
    counts = sum((run(seed) for seed in range(3)), Counter[str]())
    assert {"create", "remove", "lead", "session ended", "removed"} <= counts.keys()


def test_a_broker_that_does_not_wait_for_its_image_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Facade, "_is_current", True)
    with pytest.raises(AssertionError, match=r"is back|goes back"):
        for seed in TRIES:
            run(seed)
