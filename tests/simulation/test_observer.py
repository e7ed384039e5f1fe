"""Runs a broker with a quorum of several controllers: it keeps all committed records, and finds each new leader.

A failing run is its seed: `python -m tests.simulation 17 observer`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from broker.metadata.followed_log import FollowedLog
from coordinator.quorum.leadership import Leadership, Location
from coordinator.quorum.observer import Observer, Step, Truncate
from protocol.messages.fetch import EpochEndOffset
from tests.simulation.detection import finding
from tests.simulation.observer_world import simulate

STEPS = 150
SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_committed_stays_and_the_leader_is_found(seed: int) -> None:
    simulate(seed, STEPS)


def test_everything_that_may_happen_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        counts += simulate(seed, STEPS).counts
    assert counts.keys() >= {"notified", "zombie", "killed", "power", "disks lost", "find disks", "stop or start"}


def what_is_committed_is_truncated(patch: pytest.MonkeyPatch) -> None:
    """The fault of KAFKA-12460: the leader's answer takes precedence over the high watermark."""

    def at_any_offset(self: Observer, diverging: EpochEndOffset, high_watermark: int | None) -> Step:
        return Truncate(diverging.epoch, diverging.end_offset)

    def cut(self: FollowedLog, epoch: int, end_offset: int) -> bool:
        own = self._log.epochs.end_offset_for(epoch, self.end_offset)
        return own.epoch >= 0 and self._log.truncate_to(min(own.end_offset, end_offset), self._clock.now_ms())

    patch.setattr(Observer, "_diverged", at_any_offset)
    patch.setattr(FollowedLog, "truncate", cut)


def who_knows_the_leader_already_goes_on_asking_others(patch: pytest.MonkeyPatch) -> None:
    """The fault of KAFKA-19354: a suspected leader stays suspected, although another controller confirms that it still
    leads."""
    names_leader = Leadership.names_leader

    def unmoved(self: Leadership, leader_id: int, epoch: int) -> str | None:
        stays = self._suspected and (leader_id, epoch) == (self.leader_id, self.epoch)
        problem = names_leader(self, leader_id, epoch)
        self._suspected = self._suspected or stays
        return problem

    def of_the_configuration(self: Leadership) -> Location:
        if self.leader is not None:
            return self.leader
        self._turn += 1
        return self._bootstrap[self._turn % len(self._bootstrap)]

    patch.setattr(Leadership, "names_leader", unmoved)
    patch.setattr(Leadership, "destination", of_the_configuration)


def a_leader_that_is_silent_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    """The fault of KAFKA-17030 in an observer: it asks no other controller."""
    patch.setattr(Leadership, "suspect", lambda self: None)


def records_are_applied_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """A fault: every record that a leader has written counts as committed."""
    advance = FollowedLog.advance
    patch.setattr(FollowedLog, "advance", lambda self, high_watermark: advance(self, self.end_offset))


@pytest.mark.parametrize(
    ("plant", "text", "seeds"),
    [
        (what_is_committed_is_truncated, "taken back", range(60)),
        # Six of four thousand worlds show it: this is where the first of them is.
        (who_knows_the_leader_already_goes_on_asking_others, "does not find the leader", range(730, 740)),
        (a_leader_that_is_silent_is_waited_for, "does not find the leader", range(60)),
        (records_are_applied_as_they_come, "before it was committed", range(60)),
    ],
)
def test_a_fault_of_an_observer_is_found_out(
    plant: Callable[[pytest.MonkeyPatch], None], text: str, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert text in finding(lambda seed: simulate(seed, STEPS), seeds)
