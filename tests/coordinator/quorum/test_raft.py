"""The raft core, role by role. The cases are those of Kafka's QuorumStateTest, KafkaRaftClientTest,
KafkaRaftClientPreVoteTest and KafkaRaftClientSnapshotTest."""

from __future__ import annotations

import pytest

from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.quorum.electing import MAX_EPOCHS_AHEAD
from coordinator.quorum.log_end import LAST_EPOCH
from coordinator.quorum.observer import BeginSnapshot, WritePiece
from coordinator.quorum.ready import AdoptSnapshot, AppendBatches, RecoveredLog, TruncateTo
from coordinator.quorum.roles import MAY_FOLLOW_IN_EPOCH, MAY_FOLLOW_IN_LATER_EPOCH, Role, WrongTransition
from coordinator.quorum.rules import RULES
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from tests.coordinator.quorum.rafts import (
    ME,
    Peers,
    begin_request,
    directory,
    end_request,
    fetch_request,
    fetched,
    records,
    vote_answer,
    vote_request,
)

TEN = RecoveredLog(end_offset=10, epochs=((1, 0), (3, 6)))


def granted(response: object) -> bool:
    assert isinstance(response, VoteResponse)
    return response.topics[0].partitions[0].vote_granted


def error_of(response: object) -> int:
    assert isinstance(response, VoteResponse | BeginQuorumEpochResponse)
    return response.topics[0].partitions[0].error_code


def data_of(response: object) -> fetch.PartitionData:
    assert isinstance(response, FetchResponse)
    return response.responses[0].partitions[0]


# Roles


@pytest.mark.parametrize("before", Role)
@pytest.mark.parametrize("after", Role)
def test_a_role_follows_another_only_as_the_table_says(before: Role, after: Role) -> None:
    for epoch, table in ((5, MAY_FOLLOW_IN_EPOCH), (6, MAY_FOLLOW_IN_LATER_EPOCH)):
        if after in table[before]:
            RULES.check_transition(before, 5, after, epoch)
        else:
            with pytest.raises(WrongTransition, match=f"{after.value} in epoch {epoch} can't follow {before.value}"):
                RULES.check_transition(before, 5, after, epoch)
    with pytest.raises(WrongTransition):
        RULES.check_transition(before, 5, after, 4)


@pytest.mark.parametrize(
    ("state", "role", "epoch"),
    [
        (QuorumState(), Role.UNATTACHED, 3),  # the log ends with epoch 3: quorum-state was lost
        (QuorumState(-1, 5), Role.UNATTACHED, 5),
        (QuorumState(ME, 5), Role.RESIGNED, 5),
        (QuorumState(-1, 5, ME, directory(ME)), Role.CANDIDATE, 5),
        (QuorumState(-1, 5, ME, bytes(16)), Role.CANDIDATE, 5),  # version 0 has no directory
        (QuorumState(-1, 5, ME, directory(9)), Role.UNATTACHED, 5),  # the vote of another directory
        (QuorumState(-1, 5, 2, directory(2)), Role.UNATTACHED, 5),
        (QuorumState(2, 5), Role.FOLLOWER, 5),
        (QuorumState(2, 5, 3, directory(3)), Role.FOLLOWER, 5),
        (QuorumState(9, 5), Role.UNATTACHED, 5),  # a leader whose address is unknown
    ],
)
def test_a_voter_resumes_in_its_epoch(state: QuorumState, role: Role, epoch: int) -> None:
    peers = Peers(state=state, log=TEN)
    assert (peers.raft.role, peers.raft.epoch) == (role, epoch)


def test_a_restarted_leader_does_not_lead_in_its_epoch() -> None:
    peers = Peers(state=QuorumState(ME, 5), log=TEN)
    assert peers.sent(EndQuorumEpochRequest, 2)
    peers.pass_ms(1_000)
    assert (peers.raft.role, peers.raft.epoch, peers.raft.leader_id) == (Role.UNATTACHED, 6, -1)


def test_the_only_voter_leads_at_once_and_commits_after_its_flush() -> None:
    peers = Peers(voters=(1,), state=QuorumState(ME, 5), log=TEN)
    assert (peers.raft.role, peers.raft.epoch) == (Role.LEADER, 6)
    assert peers.ready.high_watermark is None
    peers.flush()
    assert peers.ready.high_watermark == peers.raft.end_offset == 13  # the leader change, and the voters of the format


# Elections


def test_an_election_begins_with_pre_votes_which_change_no_epoch() -> None:
    peers = Peers(log=TEN, state=QuorumState(-1, 5))
    peers.pass_ms(1_000)
    assert (peers.raft.role, peers.raft.epoch) == (Role.PROSPECTIVE, 5)
    (request,) = peers.sent(VoteRequest, 2)
    data = request.topics[0].partitions[0]
    assert (data.pre_vote, data.replica_epoch, data.last_offset, data.last_offset_epoch) == (True, 5, 10, 3)
    peers.grant(2)
    assert (peers.raft.role, peers.raft.epoch) == (Role.CANDIDATE, 6)
    assert peers.ready.quorum_state == QuorumState(-1, 6, ME, directory(ME))
    peers.grant(3)
    assert (peers.raft.role, peers.raft.leader_id) == (Role.LEADER, ME)


def test_a_voter_that_does_not_know_pre_votes_does_not_stop_an_election() -> None:
    peers = Peers()
    peers.pass_ms(1_000)
    peers.answer(peers.last_send(VoteRequest), ErrorCode.UNSUPPORTED_VERSION)
    assert peers.raft.role is Role.CANDIDATE


@pytest.mark.parametrize(
    "answer",
    [
        vote_answer(0, granted=False, code=ErrorCode.INVALID_VOTER_KEY),
        VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=[]),
    ],
)
def test_a_voter_with_a_lasting_error_is_asked_once_in_an_election(answer: VoteResponse) -> None:
    peers = Peers(log=TEN, state=QuorumState(-1, 5))
    peers.pass_ms(1_000)
    peers.answer(peers.last_send(VoteRequest), answer)
    peers.pass_ms(500)
    assert len(peers.sent(VoteRequest, 3)) == 1
    assert peers.raft.role is Role.PROSPECTIVE  # node 2 may still grant its vote
    peers.grant(2)
    assert peers.raft.role is Role.CANDIDATE


def test_a_voter_with_a_passing_error_is_asked_again_after_the_retry_backoff() -> None:
    peers = Peers(log=TEN, state=QuorumState(-1, 5))
    peers.pass_ms(1_000)
    peers.answer(peers.last_send(VoteRequest), VoteResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE, topics=[]))
    peers.pass_ms(20)
    assert len(peers.sent(VoteRequest, 3)) == 2


def test_a_rejected_pre_vote_ends_without_a_leader_or_with_the_leader_of_before() -> None:
    peers = Peers()
    peers.pass_ms(1_000)
    peers.grant(2, 3, granted=False)
    assert peers.raft.role is Role.UNATTACHED
    peers = Peers()
    peers.follow(2, 4)
    peers.pass_ms(2_000)
    assert (peers.raft.role, peers.raft.leader_id) == (Role.PROSPECTIVE, 2)
    peers.grant(3, granted=False)
    assert peers.raft.role is Role.PROSPECTIVE
    peers.grant(2, granted=False)
    assert (peers.raft.role, peers.raft.epoch, peers.raft.leader_id) == (Role.FOLLOWER, 4, 2)


def test_a_candidate_that_has_lost_waits_for_its_whole_timeout() -> None:
    peers = Peers()
    peers.pass_ms(1_000)
    peers.grant(2)
    peers.grant(2, 3, granted=False)
    peers.pass_ms(999)
    assert peers.raft.role is Role.CANDIDATE
    peers.pass_ms(1)
    assert (peers.raft.role, peers.raft.epoch) == (Role.PROSPECTIVE, 1)


def test_votes_of_strangers_and_of_other_epochs_do_not_count() -> None:
    peers = Peers(voters=(1, 2, 3, 4, 5))
    peers.pass_ms(1_000)
    peers.grant(2, epoch=-1)
    assert peers.raft.role is Role.PROSPECTIVE
    peers.grant(3)
    peers.answer(peers.last_send(VoteRequest), vote_answer(7, granted=True))
    assert (peers.raft.role, peers.raft.epoch) == (Role.UNATTACHED, 7)


def test_the_backoff_of_lost_elections_doubles_and_is_random_at_its_end() -> None:
    def most(n: int) -> int:
        return n - 1

    assert [RULES.election_backoff_ms(retries, 1_000, most) for retries in (1, 2, 3)] == [100, 300, 700]
    assert RULES.election_backoff_ms(9, 1_000, most) == 1_000
    assert RULES.election_backoff_ms(9, 1_000, lambda n: n // 2) == 750
    assert RULES.election_backoff_ms(1_000_000, 1_000, lambda _: 0) == 0


@pytest.mark.parametrize(
    ("offset", "last_epoch", "vote", "pre_vote"),
    [
        (10, 3, True, True),
        (11, 3, True, True),
        (9, 3, False, False),
        (7, 4, True, True),  # a later epoch counts more than length
        (99, 2, False, False),
    ],
)
def test_a_vote_needs_an_up_to_date_log(offset: int, last_epoch: int, vote: bool, pre_vote: bool) -> None:
    assert granted(Peers(log=TEN).ask(vote_request(2, 6, offset, last_epoch))) is vote
    assert granted(Peers(log=TEN).ask(vote_request(2, 6, offset, last_epoch, pre_vote=True))) is pre_vote


def test_a_voter_votes_once_in_an_epoch() -> None:
    peers = Peers()
    assert granted(peers.ask(vote_request(2, 4)))
    assert peers.ready.quorum_state == QuorumState(-1, 4, 2, directory(2))
    assert not granted(peers.ask(vote_request(3, 4)))
    assert granted(peers.ask(vote_request(2, 4)))
    assert granted(peers.ask(vote_request(3, 4, pre_vote=True)))
    assert granted(peers.ask(vote_request(3, 5)))


def test_a_vote_is_for_a_directory() -> None:
    peers = Peers(state=QuorumState(-1, 4, 2, directory(9)))
    assert not granted(peers.ask(vote_request(2, 4)))
    peers = Peers(state=QuorumState(-1, 4, 2, bytes(16)))  # quorum-state version 0
    assert granted(peers.ask(vote_request(2, 4)))


def test_a_follower_grants_pre_votes_until_its_leader_has_answered() -> None:
    peers = Peers()
    peers.follow(2, 4)
    assert granted(peers.ask(vote_request(3, 4, pre_vote=True)))
    assert not granted(peers.ask(vote_request(3, 4)))
    peers.fetch_answered(fetched(4, 2))
    assert not granted(peers.ask(vote_request(3, 4, pre_vote=True)))
    assert granted(peers.ask(vote_request(3, 5)))


def test_a_leader_grants_nothing_in_its_epoch() -> None:
    peers = Peers()
    peers.elect()
    assert not granted(peers.ask(vote_request(3, 1, 99, 0)))
    assert not granted(peers.ask(vote_request(3, 1, 99, 1, pre_vote=True)))
    assert peers.raft.role is Role.LEADER


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (vote_request(2, 3), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(-1, 5), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 5, 1, 5), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 5, -1, 0), ErrorCode.INVALID_REQUEST),
        (vote_request(2, 5, to=directory(9)), ErrorCode.INVALID_VOTER_KEY),
        (vote_request(2, 5, to=bytes(16)), ErrorCode.NONE),
        (vote_request(2, 5, 1, 5, pre_vote=True), ErrorCode.NONE),
        (vote_request(2, 4 + MAX_EPOCHS_AHEAD), ErrorCode.NONE),
        (vote_request(2, 5 + MAX_EPOCHS_AHEAD), ErrorCode.INVALID_REQUEST),
        (vote_request(2, LAST_EPOCH), ErrorCode.INVALID_REQUEST),
        (begin_request(2, 5 + MAX_EPOCHS_AHEAD), ErrorCode.INVALID_REQUEST),
        (begin_request(2, 3), ErrorCode.FENCED_LEADER_EPOCH),
        (begin_request(-1, 5), ErrorCode.INVALID_REQUEST),
        (begin_request(2, 5), ErrorCode.NONE),
    ],
)
def test_a_request_of_an_election_is_checked(request_: VoteRequest | BeginQuorumEpochRequest, code: ErrorCode) -> None:
    assert error_of(Peers(state=QuorumState(-1, 4)).ask(request_)) == code


def test_the_leader_survives_a_request_with_an_epoch_far_ahead() -> None:
    peers = Peers()
    peers.elect()
    peers.ask(vote_request(2, LAST_EPOCH, 99, 1))
    peers.ask(end_request(2, LAST_EPOCH, [3]))
    assert (peers.raft.role, peers.raft.epoch) == (Role.LEADER, 1)


@pytest.mark.parametrize("state", [QuorumState(-1, LAST_EPOCH), QuorumState(ME, LAST_EPOCH)])
def test_no_election_begins_in_the_last_epoch(state: QuorumState) -> None:
    peers = Peers(voters=(ME,), state=state)
    peers.pass_ms(60_000)
    assert peers.raft.epoch == LAST_EPOCH
    assert peers.raft.role is not Role.LEADER


def test_a_second_leader_of_an_epoch_is_not_followed() -> None:
    peers = Peers()
    peers.follow(2, 4)
    peers.follow(3, 4)
    assert peers.raft.leader_id == 2
    assert "named as the leader" in peers.ready.problems[-1]
    peers.follow(ME, 9)
    assert (peers.raft.role, peers.raft.epoch, peers.raft.leader_id) == (Role.UNATTACHED, 9, -1)


def test_a_restarted_node_follows_its_leader_once_it_learns_the_address() -> None:
    peers = Peers(state=QuorumState(9, 5), log=TEN)
    assert (peers.raft.role, peers.raft.leader_id) == (Role.UNATTACHED, 9)
    peers.follow(9, 5)
    assert (peers.raft.role, peers.raft.leader_id) == (Role.FOLLOWER, 9)


def test_the_first_successor_begins_an_election_at_once() -> None:
    peers = Peers()
    peers.follow(2, 4)
    peers.fetch_answered(fetched(4, 2))
    peers.ask(end_request(2, 4, [ME, 3]))
    assert peers.raft.role is Role.PROSPECTIVE
    peers = Peers()
    peers.follow(2, 4)
    peers.ask(end_request(2, 4, [3, ME]))
    peers.pass_ms(499)
    assert peers.raft.role is Role.FOLLOWER
    peers.pass_ms(1)
    assert peers.raft.role is Role.PROSPECTIVE


def test_voters_without_a_leader_fetch_from_the_configured_addresses() -> None:
    peers = Peers()
    (request,) = peers.sent(FetchRequest)
    assert request.topics[0].partitions[0].current_leader_epoch == 0
    peers.fetch_answered(fetched(3, 2))
    assert (peers.raft.role, peers.raft.epoch, peers.raft.leader_id) == (Role.FOLLOWER, 3, 2)


# The leader


def test_a_leader_commits_what_a_majority_has_with_a_record_of_its_epoch() -> None:
    peers = Peers(log=TEN, state=QuorumState(-1, 5))
    peers.pass_ms(1_000)
    peers.grant(2)
    peers.grant(2)
    peers.flush()
    end = peers.raft.end_offset
    assert data_of(peers.fetched_by(2, 10, 3)).high_watermark == -1
    assert peers.ready.high_watermark is None  # a majority has 10 records, but none of epoch 6
    peers.fetched_by(2, end, 6)
    assert peers.ready.high_watermark == end


def test_a_leader_counts_its_own_log_after_the_flush() -> None:
    peers = Peers()
    peers.elect()
    before = peers.raft.high_watermark
    offset = peers.propose()
    peers.fetched_by(2, offset, 1)
    assert peers.raft.high_watermark == before
    peers.flush()
    assert peers.raft.high_watermark == offset


def test_only_a_leader_takes_a_batch() -> None:
    peers = Peers()
    with pytest.raises(KafkaError) as error:
        peers.propose()
    assert error.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_without_a_majority_resigns_after_one_and_a_half_fetch_timeouts() -> None:
    peers = Peers()
    peers.elect()
    peers.pass_ms(2_999)
    assert peers.raft.role is Role.LEADER
    peers.pass_ms(1)
    assert peers.raft.role is Role.RESIGNED
    assert peers.sent(EndQuorumEpochRequest, 2)[0].topics[0].partitions[0].preferred_candidates[0].candidate_id == 2


def test_the_only_voter_needs_no_fetches() -> None:
    peers = Peers(voters=(1,))
    peers.pass_ms(100_000)
    assert (peers.raft.role, peers.raft.epoch) == (Role.LEADER, 1)


def test_a_leader_repeats_begin_quorum_epoch_to_voters_that_do_not_fetch() -> None:
    peers = Peers()
    peers.elect()
    peers.clear()
    peers.pass_ms(2_900)
    assert peers.sent(BeginQuorumEpochRequest, 3)
    peers.clear()
    peers.fetched_by(2, peers.raft.end_offset, 1)
    peers.pass_ms(999)
    assert not peers.sent(BeginQuorumEpochRequest, 2)


def test_a_fetch_waits_for_records_a_higher_high_watermark_or_its_time() -> None:
    peers = Peers()
    peers.elect()
    end, committed = peers.raft.end_offset, peers.raft.high_watermark
    assert peers.fetched_by(3, end, 1, max_wait_ms=500, high_watermark=committed - 1) is not None
    assert peers.fetched_by(3, end, 1, max_wait_ms=500, high_watermark=committed) is None
    replies = len(peers.ready.replies)
    peers.propose()
    assert len(peers.ready.replies) == replies + 1
    assert peers.ready.replies[-1].read is not None
    assert peers.fetched_by(3, end + 1, 1, max_wait_ms=500, high_watermark=committed) is None
    peers.pass_ms(500)
    assert len(peers.ready.replies) == replies + 2


def test_a_waiting_fetch_of_a_closed_connection_is_forgotten() -> None:
    peers = Peers()
    peers.elect()
    end, committed = peers.raft.end_offset, peers.raft.high_watermark
    peers.fetched_by(3, end, 1, max_wait_ms=LAST_EPOCH, high_watermark=committed)
    replies = len(peers.ready.replies)
    peers.raft.forget(peers.ticket)
    peers.propose()
    assert len(peers.ready.replies) == replies


def test_a_waiting_fetch_is_answered_when_the_leader_loses_its_epoch() -> None:
    peers = Peers()
    peers.elect()
    peers.fetched_by(3, peers.raft.end_offset, 1, max_wait_ms=500, high_watermark=99)
    peers.follow(2, 9)
    response = next(reply.response for reply in peers.ready.replies if isinstance(reply.response, FetchResponse)
                    and data_of(reply.response).error_code)  # fmt: skip
    data = data_of(response)
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 9)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ((2, 0, 0, 0), ErrorCode.FENCED_LEADER_EPOCH),
        ((2, 9, 0, 0), ErrorCode.UNKNOWN_LEADER_EPOCH),
        ((2, 1, -1, 0), ErrorCode.INVALID_REQUEST),
        ((2, 1, 0, -1), ErrorCode.INVALID_REQUEST),
        ((2, 1, 0, 2), ErrorCode.INVALID_REQUEST),
        ((ME, 1, 0, 0), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_fetch_is_checked(fields: tuple[int, int, int, int], code: ErrorCode) -> None:
    peers = Peers()
    peers.elect()
    data = data_of(peers.ask(fetch_request(*fields)))
    assert (data.error_code, data.high_watermark) == (code, -1)


def test_a_diverging_replica_is_told_where_its_epoch_ends() -> None:
    peers = Peers(log=TEN, state=QuorumState(-1, 5))
    peers.elect()
    for offset, last_epoch, end in ((8, 1, (1, 6)), (12, 2, (1, 6)), (11, 3, (3, 10)), (99, 6, (6, 13))):
        diverging = data_of(peers.fetched_by(3, offset, last_epoch)).diverging_epoch
        assert (diverging.epoch, diverging.end_offset) == end, (offset, last_epoch)


def test_a_replica_behind_the_log_start_gets_the_newest_snapshot() -> None:
    log = RecoveredLog(5, 10, ((1, 5), (3, 6)), (SnapshotId(5, 1), SnapshotId(8, 3)))
    peers = Peers(log=log, state=QuorumState(-1, 5))
    peers.elect()
    for offset, last_epoch in ((0, 0), (4, 1), (5, 0), (9, 0)):
        snapshot = data_of(peers.fetched_by(3, offset, last_epoch)).snapshot_id
        assert (snapshot.end_offset, snapshot.epoch) == (8, 3), offset
    assert data_of(peers.fetched_by(3, 5, 1)).snapshot_id.end_offset == -1


# The follower


def followed(epoch: int = 4, log: RecoveredLog = TEN) -> Peers:
    """Returns a follower of node 2, which has asked for records."""
    peers = Peers(log=log, state=QuorumState(-1, 3))
    peers.follow(2, epoch)
    return peers


def test_a_follower_flushes_before_its_next_fetch() -> None:
    peers = followed()
    peers.fetch_answered(fetched(4, 2, records(10, 4, 2), 11))
    (write,) = peers.ready.writes
    assert isinstance(write, AppendBatches)
    assert (write.base_offset, write.next_offset, peers.ready.high_watermark) == (10, 12, 11)
    count = len(peers.sent(FetchRequest))
    peers.pass_ms(100)
    assert len(peers.sent(FetchRequest)) == count
    peers.flush()
    assert peers.sent(FetchRequest)[-1].topics[0].partitions[0].fetch_offset == 12


@pytest.mark.parametrize(
    "content",
    [
        records(11, 4),  # a gap
        records(9, 4),
        records(10, 2),  # an epoch before the last
        records(10, 5),  # an epoch after the leader's
        records(10, 4) + records(11, 3),
        records(10, 4)[:-1] + b"?",  # damaged
        records(10, 4)[:-1],  # not whole
    ],
)
def test_impossible_records_are_rejected_as_a_whole(content: bytes) -> None:
    peers = followed()
    peers.fetch_answered(fetched(4, 2, content, 99))
    assert (peers.ready.writes, peers.raft.end_offset, peers.raft.high_watermark) == ([], 10, 0)
    assert peers.ready.problems
    peers.pass_ms(20)
    assert peers.sent(FetchRequest)[-1].topics[0].partitions[0].fetch_offset == 10


def test_a_follower_truncates_where_the_leader_diverges() -> None:
    peers = followed()
    data = fetched(4, 2)
    data.diverging_epoch = fetch.EpochEndOffset(epoch=3, end_offset=8)
    peers.fetch_answered(data)
    assert peers.ready.writes == [TruncateTo(8)]
    last = peers.sent(FetchRequest)[-1].topics[0].partitions[0]
    assert (last.fetch_offset, last.last_fetched_epoch) == (8, 3)


def test_a_follower_does_not_truncate_what_is_committed() -> None:
    peers = followed()
    peers.fetch_answered(fetched(4, 2, b"", 10))
    data = fetched(4, 2)
    data.diverging_epoch = fetch.EpochEndOffset(epoch=3, end_offset=8)
    peers.fetch_answered(data)
    assert (peers.ready.writes, peers.raft.end_offset) == ([], 10)
    assert "committed" in peers.ready.problems[-1]


def test_a_flush_from_before_a_truncation_does_not_count() -> None:
    peers = followed()
    peers.fetch_answered(fetched(4, 2, records(10, 4, 5)))
    late = peers.ready.flush
    assert late is not None
    peers.follow(3, 5)  # before it has flushed, it fetches nothing from the new leader
    peers.pass_ms(100)
    assert not peers.sent(FetchRequest, 3)
    peers.flush()
    data = fetched(5, 3)
    data.diverging_epoch = fetch.EpochEndOffset(epoch=4, end_offset=12)
    peers.fetch_answered(data)
    peers.fetch_answered(fetched(5, 3, records(12, 5, 2)))
    count = len(peers.sent(FetchRequest))
    peers.raft.flushed(late, peers.now_ms)
    assert not [send for send in peers.raft.ready().sends if isinstance(send.request, FetchRequest)]
    peers.flush()
    assert len(peers.sent(FetchRequest)) == count + 1


def test_a_snapshot_is_fetched_in_pieces_and_adopted() -> None:
    peers = followed()
    data = fetched(4, 2)
    data.snapshot_id = fetch.SnapshotId(end_offset=50, epoch=3)
    peers.fetch_answered(data)
    for position, content in ((0, b"abc"), (3, b"de")):
        assert peers.sent(FetchSnapshotRequest)[-1].topics[0].partitions[0].position == position
        peers.answer(peers.last_send(FetchSnapshotRequest), piece(position, content, 5))
    snapshot_id = SnapshotId(50, 3)
    assert peers.ready.writes == [
        BeginSnapshot(snapshot_id),
        WritePiece(snapshot_id, 0, memoryview(b"abc"), False),
        WritePiece(snapshot_id, 3, memoryview(b"de"), True),
        AdoptSnapshot(snapshot_id),
    ]
    peers.raft.adopted(snapshot_id, [], peers.now_ms)
    assert (peers.raft.end_offset, peers.raft.high_watermark) == (50, 50)


def test_a_follower_begins_no_election_while_its_leader_sends_a_snapshot() -> None:
    """Redpanda's issue 30817: a follower that recovers begins an election again and again."""
    peers = followed()
    data = fetched(4, 2)
    data.snapshot_id = fetch.SnapshotId(end_offset=50, epoch=3)
    peers.fetch_answered(data)
    for position in range(5):
        peers.pass_ms(1_500)  # the fetch timeout is 2 seconds
        peers.answer(peers.last_send(FetchSnapshotRequest), piece(position, b"a", 6))
    assert peers.raft.role is Role.FOLLOWER
    assert not peers.sent(VoteRequest)


def test_a_leader_that_has_resigned_is_reported_as_resigned() -> None:
    """KAFKA-17333: a resigned leader told the controller that it leads. KAFKA-13104: the controller resigns."""
    peers = Peers(log=TEN)
    peers.elect()
    epoch = peers.raft.epoch
    peers.clear()
    peers.raft.resign(epoch - 1, peers.now_ms)
    assert peers.raft.role is Role.LEADER  # the controller of an earlier epoch
    peers.raft.resign(epoch, peers.now_ms)
    peers.pass_ms(0)
    assert peers.ready.leader is not None or peers.raft.ready().leader is not None
    assert (peers.raft.role, peers.raft.leader_id) == (Role.RESIGNED, ME)


def test_a_snapshot_below_the_high_watermark_is_refused() -> None:
    peers = followed()
    peers.fetch_answered(fetched(4, 2, b"", 10))
    data = fetched(4, 2)
    data.snapshot_id = fetch.SnapshotId(end_offset=10, epoch=9)
    peers.fetch_answered(data)
    assert not peers.sent(FetchSnapshotRequest)


def piece(position: int, content: bytes, size: int) -> FetchSnapshotResponse:
    data = fetch_snapshot.ResponsePartitionSnapshot(
        index=0,
        error_code=0,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=50, epoch=3),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
        size=size,
        position=position,
        unaligned_records=content,
    )
    topic = fetch_snapshot.ResponseTopicSnapshot(name="__cluster_metadata", partitions=[data])
    return FetchSnapshotResponse(error_code=0, topics=[topic], node_endpoints=[])


def test_a_broker_only_observes() -> None:
    peers = Peers(voters=(2, 3), can_vote=False)
    peers.pass_ms(60_000)
    assert peers.raft.role is Role.UNATTACHED
    assert not peers.sent(VoteRequest)


def test_an_observer_asks_others_while_its_leader_does_not_answer() -> None:
    peers = Peers(voters=(2, 3), can_vote=False)
    peers.follow(2, 4)
    peers.answer(peers.last_send(FetchRequest), ErrorCode.REQUEST_TIMED_OUT)
    peers.pass_ms(20)
    peers.answer(peers.last_send(FetchRequest), ErrorCode.BROKER_NOT_AVAILABLE)
    assert peers.last_send(FetchRequest).node_id < 0


def test_a_clock_that_goes_back_changes_nothing() -> None:
    peers = Peers()
    peers.pass_ms(999)
    peers.raft.tick(-1_000_000)
    peers.raft.tick(999)
    assert peers.raft.role is Role.UNATTACHED
    assert peers.raft.deadline_ms <= 1_000


# A full disk


def test_a_leader_whose_disk_is_full_resigns_and_forgets_what_was_not_written() -> None:
    peers = Peers(log=TEN)
    peers.elect()
    end_offset = peers.raft.end_offset
    peers.propose()
    peers.raft.not_written(end_offset, peers.now_ms)
    peers.pass_ms(0)
    assert (peers.raft.role, peers.raft.end_offset) == (Role.RESIGNED, end_offset)
    assert peers.raft.high_watermark == end_offset
    with pytest.raises(KafkaError):
        peers.propose()


def test_the_only_voter_leads_on_when_its_disk_is_full() -> None:
    peers = Peers(voters=(1,), log=TEN)
    peers.flush()
    end_offset = peers.raft.end_offset
    peers.propose()
    peers.raft.not_written(end_offset, peers.now_ms)
    assert (peers.raft.role, peers.raft.end_offset) == (Role.LEADER, end_offset)
    peers.propose()
    peers.flush()
    assert peers.raft.high_watermark == end_offset + 1


def test_the_only_voter_whose_epoch_could_not_be_written_tries_later() -> None:
    peers = Peers(voters=(1,), log=TEN)
    peers.raft.not_written(10, peers.now_ms)
    assert peers.raft.role is Role.RESIGNED
    peers.pass_ms(4_999)
    assert peers.raft.role is Role.UNATTACHED
    peers.pass_ms(2_000)
    assert peers.raft.role is Role.LEADER


def test_a_follower_whose_disk_is_full_neither_fetches_nor_begins_an_election() -> None:
    peers = Peers(log=TEN, state=QuorumState(-1, 3))
    peers.follow(2, 4)
    peers.fetch_answered(fetched(4, 2, records(10, 4), 11))
    peers.clear()
    peers.raft.not_written(10, peers.now_ms)
    peers.pass_ms(4_999)
    assert peers.raft.role is Role.FOLLOWER
    assert (peers.raft.end_offset, peers.raft.high_watermark) == (10, 10)
    assert not peers.ready.sends
    peers.pass_ms(1)
    assert peers.sent(FetchRequest, 2)
    assert peers.raft.role is Role.FOLLOWER
