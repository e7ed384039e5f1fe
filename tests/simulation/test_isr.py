"""Runs a leader's ISR with brokers that die, lost requests and late metadata.

A failing run is its seed: `pytest tests/simulation/test_isr.py -k "seed and 17"`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.replica import alter_partition
from coordinator.cluster.topics.topic import PartitionRegistration
from coordinator.replication import isr_changes, roles
from coordinator.replication.isr import NO_BROKER_EPOCH, Follower, Isr
from coordinator.replication.roles import Leading, Role
from protocol.errors import ErrorCode
from tests.simulation import isr_world
from tests.simulation.isr_world import IsrBreach, IsrWorld, SimulatedBroker
from tests.simulation.virtual_time import run

pytestmark = pytest.mark.source_only  # its replicas have models of logs

SEEDS = range(20)
MANY_SEEDS = range(100)
"""Many seeds, because a broker that is taken for its former process does harm in one run of twenty."""
ROUNDS = 25


async def simulate(seed: int) -> tuple[IsrWorld, bool]:
    world = IsrWorld(seed)
    return world, await world.run(ROUNDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_was_committed_is_lost(seed: int) -> None:
    world, has_converged = run(lambda: simulate(seed))
    assert not world.breaches
    assert has_converged


def test_runs_commit_much_and_the_controller_answers_in_every_way() -> None:
    worlds = [run(lambda seed=seed: simulate(seed))[0] for seed in SEEDS]  # type: ignore[misc]
    assert sum(len(world.committed) for world in worlds) > 50 * len(SEEDS)
    assert {code for world in worlds for code in world.altered} == {
        ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA,
    }  # fmt: skip


def test_a_run_is_its_seed() -> None:
    first, second = (run(lambda: simulate(3))[0] for _ in range(2))
    assert first.committed == second.committed
    assert first.controller.history == second.controller.history


# The simulation finds what is planted


def who_is_to_join_does_not_count_yet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Isr, "maximal", property(lambda isr: isr.committed))
    patch.setattr(Follower, "is_caught_up", lambda follower, end, *_: follower.log_end_offset == end)


def who_is_to_leave_counts_no_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Isr, "maximal", property(lambda isr: isr.proposed))


def a_change_that_may_have_been_made_is_taken_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(isr_changes, "NOT_APPLIED", isr_changes.NOT_APPLIED | isr_changes.SUPERSEDED)
    patch.setattr(Follower, "is_caught_up", lambda follower, end, *_: follower.log_end_offset == end)


def metadata_of_the_same_epoch_takes_a_change_back(patch: pytest.MonkeyPatch) -> None:
    def forgetful(before: Role, assigned: PartitionRegistration, *rest: int) -> Role:
        role = roles.next_role(before, assigned, *rest)
        return role.with_isr(role.isr.rolled_back()) if isinstance(role, Leading) else role

    patch.setattr(isr_world, "next_role", forgetful)
    patch.setattr(Follower, "is_caught_up", lambda follower, end, *_: follower.log_end_offset == end)


def min_isr_does_not_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leading, "min_isr", lambda *_: 1)


def whoever_fetches_joins(patch: pytest.MonkeyPatch) -> None:
    def whoever(role: Leading, follower: Follower, *_: object) -> bool:
        return role.isr.is_settled and follower.replica_id not in role.isr.committed

    patch.setattr(Leading, "may_join", whoever)


def a_broker_is_taken_for_its_former_self(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedBroker, "_may_be_in_sync", lambda *_: True)
    patch.setattr(SimulatedBroker, "_broker_epoch", lambda *_: NO_BROKER_EPOCH)
    replica = isr_changes.InSyncReplica
    patch.setattr(isr_changes, "InSyncReplica", lambda broker_id, _: replica(broker_id, NO_BROKER_EPOCH))


def each_proposal_is_sent_by_itself(patch: pytest.MonkeyPatch) -> None:
    propose = alter_partition.AlterPartitionManager.propose

    def impatient(manager: alter_partition.AlterPartitionManager, *arguments: object) -> None:
        manager._sending = None
        manager._changes = isr_changes.IsrChanges(manager._changes._broker_id)
        propose(manager, *arguments)  # type: ignore[arg-type]

    patch.setattr(alter_partition.AlterPartitionManager, "propose", impatient)


PLANTED: dict[Callable[[pytest.MonkeyPatch], None], set[IsrBreach]] = {
    who_is_to_join_does_not_count_yet: {IsrBreach.AHEAD},
    who_is_to_leave_counts_no_more: {IsrBreach.AHEAD},
    a_change_that_may_have_been_made_is_taken_back: {IsrBreach.AHEAD},
    metadata_of_the_same_epoch_takes_a_change_back: {IsrBreach.AHEAD},
    min_isr_does_not_matter: {IsrBreach.BELOW_MIN_ISR},
    whoever_fetches_joins: {IsrBreach.INCOMPLETE},
    a_broker_is_taken_for_its_former_self: {IsrBreach.INCOMPLETE},
    each_proposal_is_sent_by_itself: {IsrBreach.TWO_REQUESTS},
}


@pytest.mark.parametrize(("plant", "expected"), PLANTED.items(), ids=lambda value: getattr(value, "__name__", " "))
def test_a_fault_that_is_planted_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], expected: set[IsrBreach], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert any(
        expected <= set(run(lambda seed=seed: simulate(seed))[0].breaches)  # type: ignore[misc]
        for seed in MANY_SEEDS
    )
