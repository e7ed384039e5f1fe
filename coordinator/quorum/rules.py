"""The rules that keep a quorum safe and alive, each a function of its arguments alone.

They are one class, so that a simulation can replace a rule by a fault that other programs have had, and show that it is
found. The bug that a rule prevents is named beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.log_end import LogEnd
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role, check_transition
from coordinator.quorum.voter_set import VoterSet
from protocol.types import NO_UUID

CHECK_QUORUM_FACTOR: Final = 1.5
"""A leader waits this many fetch timeouts for a majority's fetches, because the fetches need time to arrive
(LeaderState.CHECK_QUORUM_TIMEOUT_FACTOR)."""

BACKOFF_BASE_MS: Final = 100
"""The first step of the election backoff (KafkaRaftClient.RETRY_BACKOFF_BASE_MS)."""

MAX_BACKOFF_STEPS: Final = 20
"""Steps of the election backoff after which it no longer doubles, so that its exponent stays small."""


class Rules:
    """The rules of KRaft."""

    def check_transition(self, before: Role, epoch: int, after: Role, new_epoch: int) -> None:
        """Raises WrongTransition if the new role may not follow the role of before, or if the epoch would go back."""
        check_transition(before, epoch, after, new_epoch)

    def counted_offset(self, flushed_offset: int, end_offset: int) -> int:
        """Returns the offset up to which a leader counts its own log: a power cut takes the rest (KAFKA-10533)."""
        return flushed_offset

    def may_fetch(self, flushed_offset: int, end_offset: int) -> bool:
        """True if a voter may fetch from its end: the leader counts everything before it (KAFKA-10533)."""
        return flushed_offset >= end_offset

    def may_commit(self, offset: int, epoch_start_offset: int) -> bool:
        """True if a leader may commit up to an offset: only with a record of its own epoch, because a later leader may
        replace a majority's records of earlier epochs (KAFKA-12619)."""
        return offset > epoch_start_offset

    def high_watermark(self, before: int, computed: int) -> int:
        """Returns the high watermark after a new computation: a new voter that lags does not move it back."""
        return max(before, computed)

    def counted_voters(self, voters: VoterSet, committed: VoterSet) -> VoterSet:
        """Returns the voter set that decides: the last in the log, although it may not be committed (KIP-853)."""
        return voters

    def majority(self, voters: int) -> int:
        """Returns the number of voters that decide."""
        return voters // 2 + 1

    def may_truncate(self, offset: int, high_watermark: int) -> bool:
        """True if the log may be truncated there, on behalf of any leader (KAFKA-12460)."""
        return offset >= high_watermark

    def adopts(self, snapshot_id: SnapshotId, high_watermark: int) -> bool:
        """True if a snapshot that the leader offers may replace the log: it includes all committed records."""
        return snapshot_id.offset > high_watermark

    def accepts(self, last_epoch: int, batch_epoch: int, leader_epoch: int) -> bool:
        """True if a batch of that epoch may follow in a follower's log (KAFKA-18723)."""
        return last_epoch <= batch_epoch <= leader_epoch

    def is_up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        """True if a candidate's log has at least the records of this one: a later epoch counts more than length."""
        return (candidate.epoch, candidate.offset) >= (own.epoch, own.offset)

    def is_voted(self, voted: ReplicaKey, candidate: ReplicaKey) -> bool:
        """True if a vote was for that candidate and its directory (KAFKA-17426); `quorum-state` version 0 has no
        directory."""
        return voted.node_id == candidate.node_id and voted.directory_id in (NO_UUID, candidate.directory_id)

    def grants_vote(
        self, role: Role, voted: ReplicaKey | None, has_leader: bool, candidate: ReplicaKey, up_to_date: bool
    ) -> bool:
        """True if a node votes for a candidate in its own epoch: at most once, and not if the epoch has a leader."""
        if role not in (Role.UNATTACHED, Role.PROSPECTIVE):
            return False
        if voted is not None:
            return self.is_voted(voted, candidate)
        return not has_leader and up_to_date

    def grants_pre_vote(self, role: Role, has_fetched: bool, up_to_date: bool) -> bool:
        """True if a node grants a pre-vote: not while it knows a leader that answers (KIP-996)."""
        return up_to_date and role is not Role.LEADER and not (role is Role.FOLLOWER and has_fetched)

    def resumes_as(self, led: bool, voted_for_itself: bool) -> Role:
        """Returns the role of a voter after a restart in its epoch. A leader doesn't lead again in its epoch, because
        it may have lost records (KAFKA-10527)."""
        if led:
            return Role.RESIGNED
        return Role.CANDIDATE if voted_for_itself else Role.UNATTACHED

    def checks_quorum(self, voters: VoterSet, key: ReplicaKey) -> bool:
        """True if a leader resigns without a majority's fetches (KAFKA-15489): not the only voter (KAFKA-16144)."""
        return not voters.is_only_voter(key)

    def fetches_required(self, voters: VoterSet, key: ReplicaKey) -> int:
        """Returns the number of other voters whose fetches are a majority. A leader outside of the voter set doesn't
        count itself (KAFKA-16531)."""
        return self.majority(len(voters)) - voters.is_voter(key)

    def counts_itself(self, voters: VoterSet, key: ReplicaKey) -> bool:
        """True if a leader counts its own log: only if it is a voter (KAFKA-16530)."""
        return voters.is_voter(key)

    def may_elect_when_removed(self) -> bool:
        """True if a node begins elections, without counting itself, while its removal may not be committed: it may be
        the only node that the others can follow, because only it has the record of the removal (section 4.2.2 of the
        thesis that describes Raft)."""
        return True

    def may_change_voters(self, voters_offset: int, high_watermark: int, epoch_start_offset: int) -> bool:
        """True if the leader may write another voter set: the last is committed, and so is a record of this epoch
        (the fault in the thesis that describes Raft, raft-dev 2015)."""
        return voters_offset < high_watermark and high_watermark > epoch_start_offset

    def after_lost_pre_vote(self, has_leader: bool) -> Role:
        """Returns the role after a pre-vote that was rejected or has timed out: the known leader may still lead, and a
        node never stays Prospective (NotStuckInProspective)."""
        return Role.FOLLOWER if has_leader else Role.UNATTACHED

    def election_backoff_ms(self, retries: int, max_ms: int, draw: Callable[[int], int]) -> int:
        """Returns the pause after a lost election. It doubles with each, and its end is random too, so that candidates
        don't meet again and again (KAFKA-18345)."""
        steps = min(max(retries - 1, 0), MAX_BACKOFF_STEPS)
        backoff_ms = BACKOFF_BASE_MS * draw(2 << steps)
        return backoff_ms if backoff_ms < max_ms else max_ms // 2 + draw(max_ms // 2 + 1)

    def successor_backoff_ms(self, position: int, successors: int, max_ms: int) -> int:
        """Returns the pause before an election after a leader has resigned: the first of its preferred successors
        begins at once (strictExponentialElectionBackoffMs)."""
        if position == 0:
            return 0
        if position >= successors:
            return max_ms
        return min(max_ms, (max_ms >> (successors - 1)) << (position - 1))


RULES: Final = Rules()
