"""Runs the holdback simulation over seeds, and checks that it detects planted faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from coordinator.share_partition import holdback
from coordinator.share_partition.cache import InFlightBatch
from coordinator.share_partition.holdback import Holdback, Piece
from coordinator.share_partition.run import Run
from tests.coordinator.share_partition.holdback_world import BY_BOTH, BY_KEY, BY_TIME, HoldbackWorld

RULES = {"time": BY_TIME, "key": BY_KEY, "both": BY_BOTH}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_the_invariants_hold_after_every_step(seed: int, rules: str) -> None:
    HoldbackWorld(seed, RULES[rules]).run(400)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_while_the_options_change(seed: int) -> None:
    HoldbackWorld(seed, BY_BOTH, is_steady=False).run(400)


def _nobody_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Holdback, "_holders", lambda *_: {})


def _nothing_is_closed(patch: pytest.MonkeyPatch) -> None:
    whole = Holdback._open

    def open_(
        self: Holdback, batch: InFlightBatch, run: Run, offsets: range, window: range, closed: set[int]
    ) -> Iterator[Piece]:
        return whole(self, batch, run, offsets, window, set())

    patch.setattr(Holdback, "_open", open_)


def _nothing_is_delayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(holdback, "_delay", lambda *_: None)


def _all_is_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Holdback, "frontier", lambda self, partition: partition.end_offset + 1)


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "leases are not looked at": (_nobody_holds, "one member|in order"),
    "what waits closes no key": (_nothing_is_closed, "one member|in order"),
    "times are not looked at": (_nothing_is_delayed, "before its time"),
    "what was stored is not learned": (_all_is_known, "forgotten|at least once|behind|one member|in order|its time"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, invariant = FAULTS[fault]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=invariant):
        for seed in range(12):
            HoldbackWorld(seed, BY_BOTH).run(400)
