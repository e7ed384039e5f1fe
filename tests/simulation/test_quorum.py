"""Runs quorums of several voters through faults of network, disks, clocks and operators: an epoch has one leader, what
is committed stays, and a healthy quorum goes on.

A failing run is its seed: `python -m tests.simulation 17 quorum`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator.cluster.quorum_state import QuorumState
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import MAY_FOLLOW_IN_EPOCH, MAY_FOLLOW_IN_LATER_EPOCH, Role
from coordinator.quorum.rules import Rules
from coordinator.quorum.voter_set import VoterSet
from tests.simulation.detection import finding
from tests.simulation.quorum_faults import KINDS, run, simulate, simulate_hasty, simulate_restored
from tests.simulation.quorum_node import QuorumNode
from tests.simulation.quorum_world import QuorumWorld

STEPS = 40
SEEDS = (*range(12), 512586, 721602)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quorum_keeps_what_is_committed_and_recovers(seed: int) -> None:
    simulate(seed, STEPS)


def test_everything_that_may_happen_happens() -> None:
    counts: Counter[str] = Counter()
    transitions: Counter[tuple[Role, Role, bool]] = Counter()
    for seed in (*range(40), 185):  # the last has the rarest transition, of a leader to a later leader's follower
        world = simulate(seed, STEPS)
        counts += world.counts
        transitions += world.transitions
    assert counts.keys() >= {
        "adopted", "all without power", "cut", "damaged records", "disk lost", "duplicate", "elected", "jump", "killed",
        "moved", "power cut", "removed at the end", "snapshot", "stopped", "truncated", "upgraded", "voters written",
    }  # fmt: skip
    in_epoch = {(before, after) for before, roles in MAY_FOLLOW_IN_EPOCH.items() for after in roles}
    later = {(before, after) for before, roles in MAY_FOLLOW_IN_LATER_EPOCH.items() for after in roles}
    seen = {(before, after) for before, after, is_later in transitions if not is_later}
    seen_later = {(before, after) for before, after, is_later in transitions if is_later}
    assert in_epoch - seen == set()
    assert later - seen_later == set()


class CountsBeforeTheFlush(Rules):
    """KAFKA-10533: a leader counts records that a power cut takes."""

    def counted_offset(self, flushed_offset: int, end_offset: int) -> int:
        return end_offset


class FetchesBeforeTheFlush(Rules):
    """KAFKA-10533 in a follower."""

    def may_fetch(self, flushed_offset: int, end_offset: int) -> bool:
        return True


class CommitsEarlierEpochs(Rules):
    """KAFKA-12619: a leader commits records of earlier epochs by counting."""

    def may_commit(self, offset: int, epoch_start_offset: int) -> bool:
        return offset >= 0


class MovesTheHighWatermarkBack(Rules):
    """A recomputed high watermark is not clamped: a new voter that lags moves it back."""

    def high_watermark(self, before: int, computed: int) -> int:
        return computed


class CountsCommittedVoters(Rules):
    """Only committed voter sets count."""

    def counted_voters(self, voters: VoterSet, committed: VoterSet) -> VoterSet:
        return committed


class CountsHalf(Rules):
    """Half of the voters decide."""

    def majority(self, voters: int) -> int:
        return max(1, voters // 2)


class TruncatesWhatIsCommitted(Rules):
    """KAFKA-12460: the leader's answer takes precedence over the high watermark."""

    def may_truncate(self, offset: int, high_watermark: int) -> bool:
        return True


class AcceptsAnyEpoch(Rules):
    """KAFKA-18723: a follower appends batches of impossible epochs."""

    def accepts(self, last_epoch: int, batch_epoch: int, leader_epoch: int) -> bool:
        return True


class ComparesLength(Rules):
    """The longer log is taken as the more up-to-date, whatever its epoch."""

    def is_up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        return candidate.offset >= own.offset


class VotesForAnyLog(Rules):
    """A voter doesn't compare the logs."""

    def is_up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        return True


class VotesTwice(Rules):
    """A voter forgets its vote."""

    def grants_vote(
        self, role: Role, voted: ReplicaKey | None, has_leader: bool, candidate: ReplicaKey, up_to_date: bool
    ) -> bool:
        return up_to_date and role in (Role.UNATTACHED, Role.PROSPECTIVE)


class GrantsEveryPreVote(Rules):
    """A voter that comes back replaces a leader that a majority follows."""

    def grants_pre_vote(self, role: Role, has_fetched: bool, up_to_date: bool) -> bool:
        return True


class LeadsAgain(Rules):
    """KAFKA-10527: a restarted leader leads again in its epoch."""

    def resumes_as(self, led: bool, voted_for_itself: bool) -> Role:
        return Role.LEADER if led else super().resumes_as(led, voted_for_itself)


class LeadsWithoutMajority(Rules):
    """KAFKA-15489: a leader that no other node reaches never resigns."""

    def checks_quorum(self, voters: VoterSet, key: ReplicaKey) -> bool:
        return False


class OnlyVoterResigns(Rules):
    """KAFKA-16144: the only voter waits for a majority's fetches."""

    def checks_quorum(self, voters: VoterSet, key: ReplicaKey) -> bool:
        return True

    def fetches_required(self, voters: VoterSet, key: ReplicaKey) -> int:
        return max(1, super().fetches_required(voters, key))


class DoesNotCountItself(Rules):
    """KAFKA-16531 the other way round: a leader wants a majority of others."""

    def fetches_required(self, voters: VoterSet, key: ReplicaKey) -> int:
        return self.majority(len(voters))


class CountsItselfOutside(Rules):
    """KAFKA-16530: a leader that is no longer a voter counts its own log."""

    def counts_itself(self, voters: VoterSet, key: ReplicaKey) -> bool:
        return True


class ChangesVotersTwice(Rules):
    """A leader writes a voter set before the last one is committed."""

    def may_change_voters(self, voters_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
        return True


class OnlyVotersElect(Rules):
    """A leader that has written its own removal dies before others have it: nobody can be elected any more."""

    def may_elect_when_removed(self) -> bool:
        return False


class StaysProspective(Rules):
    """NotStuckInProspective: a voter whose pre-votes were rejected never asks again."""

    def after_lost_pre_vote(self, has_leader: bool) -> Role:
        return Role.PROSPECTIVE


@pytest.mark.parametrize(
    ("rules", "text", "seeds"),
    [
        (CountsBeforeTheFlush, "have flushed it", range(10)),
        (FetchesBeforeTheFlush, "have flushed it", range(10)),
        (CommitsEarlierEpochs, "by counting", range(10)),
        (MovesTheHighWatermarkBack, "goes back", range(30, 50)),
        (CountsCommittedVoters, "have flushed it", range(10)),
        (CountsHalf, "have flushed it", range(10)),
        (AcceptsAnyEpoch, "does not recover", range(18, 50)),
        (ComparesLength, "other committed records", range(2, 30)),
        (VotesForAnyLog, "committed records", range(12, 40)),
        (VotesTwice, "another batch", range(9, 60)),
        (GrantsEveryPreVote, "is replaced", range(10)),
        (LeadsAgain, "second leader", range(10)),
        (LeadsWithoutMajority, "leads on", range(10)),
        (OnlyVoterResigns, "nobody leads", range(10)),
        (DoesNotCountItself, "is replaced", range(10)),
        (CountsItselfOutside, "have flushed it", range(14, 40)),
        (OnlyVotersElect, "does not recover", range(190, 230)),
        (StaysProspective, "does not recover", range(58, 80)),
    ],
)
def test_a_fault_of_the_rules_is_found_out(rules: type[Rules], text: str, seeds: range) -> None:
    assert text in finding(lambda seed: simulate(seed, STEPS, rules()), seeds)


def test_nodes_without_a_pause_after_failures_are_found_out() -> None:
    """KAFKA-17751 and KAFKA-19605: a node asks again as fast as it is answered, and uses up a processor."""

    def busy(seed: int) -> None:
        world = QuorumWorld(seed)
        world.config = world.config._replace(retry_backoff_ms=1)
        run(world, STEPS, KINDS)

    assert "busy" in finding(busy, range(10))


class LyingDisk(QuorumNode):
    """A disk that acknowledges flushes which it hasn't made (Jepsen's NATS 2.12.1: a lazy fsync)."""

    def make_durable(self, offset: int) -> None:
        return


class ForgetfulDisk(QuorumNode):
    """A node whose `quorum-state` is never written."""

    def store(self, state: QuorumState) -> None:
        return


@pytest.mark.parametrize(("kind", "text"), [(LyingDisk, "have flushed it"), (ForgetfulDisk, "second leader")])
def test_a_fault_of_the_disk_is_found_out(kind: type[QuorumNode], text: str) -> None:
    assert text in finding(lambda seed: simulate(seed, STEPS, kind=kind), range(20))


def test_a_node_never_truncates_below_its_own_high_watermark() -> None:
    for seed in range(6):
        simulate_restored(seed, STEPS)
    reason = finding(lambda seed: simulate_restored(seed, STEPS, TruncatesWhatIsCommitted()), range(6))
    assert "below its high watermark" in reason


def test_a_second_change_of_the_voters_waits_until_the_first_is_committed() -> None:
    worlds = [simulate_hasty(seed) for seed in range(16)]
    assert sum(world.counts["hasty"] for world in worlds)
    assert "not committed" in finding(lambda seed: simulate_hasty(seed, ChangesVotersTwice()), range(16))
