"""Changes of the voter set. The cases are those of Kafka's KafkaRaftClientReconfigTest and
KafkaRaftClientAutoJoinTest."""

from __future__ import annotations

from functools import partial

import pytest

from coordinator.quorum.ready import RecoveredLog, Request
from coordinator.quorum.roles import Role
from protocol.errors import ErrorCode
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from protocol.messages.update_raft_voter import Listener as UpdatedListener
from protocol.records.control import KRaftVersionRecord, VotersRecord
from tests.coordinator.quorum.rafts import CLUSTER, CONFIG, LISTENER, ME, Peers, directory, fetched
from tests.counted_work import lines_run


def add_request(node_id: int, listener: str = LISTENER, *, ack: bool = True) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=1_000,
        voter_id=node_id,
        voter_directory_id=directory(node_id),
        listeners=[Listener(name=listener, host=f"n{node_id}", port=9093)],
        ack_when_committed=ack,
    )


def remove_request(node_id: int, directory_id: bytes | None = None) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER,
        voter_id=node_id,
        voter_directory_id=directory(node_id) if directory_id is None else directory_id,
    )


def update_request(node_id: int, epoch: int, port: int = 9093, *, most: int = 1) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER,
        current_leader_epoch=epoch,
        voter_id=node_id,
        voter_directory_id=directory(node_id),
        listeners=[UpdatedListener(name=LISTENER, host=f"n{node_id}", port=port)],
        k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=most),
    )


def versions(most: int = 1) -> ApiVersionsResponse:
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=most)
    return ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[feature])


def code_of(response: object) -> tuple[int, str | None]:
    assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
    return response.error_code, response.error_message


def a_leader(*voters: int, static: bool = False) -> Peers:
    peers = Peers(voters=voters, static=static)
    peers.elect()
    return peers


def commit(peers: Peers, *node_ids: int) -> None:
    """Lets these voters fetch everything, after the leader has flushed it."""
    peers.flush()
    for node_id in node_ids:
        peers.fetched_by(node_id, peers.raft.end_offset, peers.raft.epoch)


def last_error(peers: Peers) -> tuple[int, str | None]:
    """Returns the last answer to a change of the voters."""
    answers = [
        reply.response
        for reply in peers.ready.replies
        if isinstance(reply.response, AddRaftVoterResponse | RemoveRaftVoterResponse)
    ]
    return code_of(answers[-1])


def test_a_voter_is_added_when_it_has_caught_up_and_its_set_is_committed() -> None:
    peers = a_leader(1, 2, 3)
    peers.fetched_by(4, peers.raft.end_offset, 1)
    assert peers.ask(add_request(4)) is None
    peers.answer(peers.last_send(ApiVersionsRequest), versions())
    assert peers.raft.voters.ids == [1, 2, 3, 4]  # it counts before it is committed
    commit(peers, 2)
    assert not isinstance(peers.ready.replies[-1].response, AddRaftVoterResponse)
    commit(peers, 3)
    assert last_error(peers) == (ErrorCode.NONE, None)


def test_auto_join_is_answered_before_the_commit() -> None:
    peers = a_leader(1, 2, 3)
    peers.fetched_by(4, peers.raft.end_offset, 1)
    peers.ask(add_request(4, ack=False))
    peers.answer(peers.last_send(ApiVersionsRequest), versions())
    assert last_error(peers) == (ErrorCode.NONE, None)


def test_a_replica_that_lags_or_has_no_kraft_version_1_is_not_added() -> None:
    peers = a_leader(1, 2, 3)
    peers.ask(add_request(4))
    peers.answer(peers.last_send(ApiVersionsRequest), versions())
    assert last_error(peers)[0] == ErrorCode.REQUEST_TIMED_OUT
    peers.fetched_by(4, peers.raft.end_offset, 1)
    peers.ask(add_request(4))
    peers.answer(peers.last_send(ApiVersionsRequest), versions(most=0))
    assert last_error(peers)[0] == ErrorCode.INVALID_REQUEST
    peers.ask(add_request(4))
    peers.answer(peers.last_send(ApiVersionsRequest), ErrorCode.BROKER_NOT_AVAILABLE)
    assert last_error(peers)[0] == ErrorCode.REQUEST_TIMED_OUT
    assert peers.raft.voters.ids == [1, 2, 3]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (add_request(2), ErrorCode.DUPLICATE_VOTER),
        (add_request(4, "OTHER"), ErrorCode.INVALID_REQUEST),
        (add_request(-4), ErrorCode.INVALID_REQUEST),
        (remove_request(4), ErrorCode.VOTER_NOT_FOUND),
        (remove_request(2, directory(9)), ErrorCode.VOTER_NOT_FOUND),
        (remove_request(2, bytes(16)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_impossible_change_is_rejected(request_: Request, code: ErrorCode) -> None:
    assert code_of(a_leader(1, 2, 3).ask(request_))[0] == code


WRONG_LISTENERS = [
    [(LISTENER, "n2", 9093), *((f"L{number}", "n2", 9093) for number in range(64))],
    [(LISTENER, "n2", 9093), (LISTENER, "n3", 9093)],
    [(LISTENER, "n" * 256, 9093)],
    [(LISTENER, "n2", 9093), ("L" * 256, "n2", 9093)],
    [(LISTENER, "", 9093)],
    [(LISTENER, "n2", 0)],
]
"""Listeners that every node would have to store for ever, or that no node could connect to."""


@pytest.mark.parametrize("listeners", WRONG_LISTENERS)
def test_a_voter_has_few_listeners_with_short_names(listeners: list[tuple[str, str, int]]) -> None:
    peers = a_leader(1, 2, 3)
    end_offset = peers.raft.end_offset
    peers.fetched_by(4, end_offset, 1)
    added = add_request(4)
    added.listeners = [Listener(name=name, host=host, port=port) for name, host, port in listeners]
    assert code_of(peers.ask(added))[0] == ErrorCode.INVALID_REQUEST
    updated = update_request(2, 1)
    updated.listeners = [UpdatedListener(name=name, host=host, port=port) for name, host, port in listeners]
    response = peers.ask(updated)
    assert isinstance(response, UpdateRaftVoterResponse)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert peers.raft.end_offset == end_offset


def test_the_work_for_too_many_listeners_does_not_depend_on_their_number() -> None:
    lines = []
    for count in (100, 200):
        peers = a_leader(1, 2, 3)
        added, updated = add_request(4, "OTHER"), update_request(2, 1)
        added.listeners *= count
        updated.listeners *= count
        lines.append(lines_run(partial(peers.ask, added)) + lines_run(partial(peers.ask, updated)))
        assert last_error(peers) == (ErrorCode.INVALID_REQUEST, f"{count} listeners in request, more than 64")
    assert lines[0] == lines[1]


def test_only_a_leader_that_has_committed_in_its_epoch_changes_voters() -> None:
    peers = Peers()
    assert code_of(peers.ask(remove_request(2)))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    peers.pass_ms(1_000)
    peers.grant(2)
    peers.grant(2)
    code, message = code_of(peers.ask(remove_request(2)))
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert message is not None
    assert "establish HWM" in message


def test_a_change_waits_for_the_change_of_before() -> None:
    peers = a_leader(1, 2, 3)
    assert peers.ask(remove_request(3)) is None
    assert code_of(peers.ask(remove_request(2)))[0] == ErrorCode.REQUEST_TIMED_OUT
    peers.pass_ms(2_000)
    assert last_error(peers)[0] == ErrorCode.REQUEST_TIMED_OUT
    code, message = code_of(peers.ask(remove_request(2)))  # the first is still not committed
    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert message is not None
    assert "commit the latest voter change" in message


def test_a_leader_removes_itself_and_resigns_when_that_is_committed() -> None:
    peers = a_leader(1, 2, 3)
    peers.ask(remove_request(ME))
    commit(peers, 2)
    assert peers.raft.role is Role.LEADER  # of the voters 2 and 3, one has it: the leader doesn't count itself
    commit(peers, 3)
    assert last_error(peers) == (ErrorCode.NONE, None)
    assert peers.raft.role is Role.RESIGNED
    peers.pass_ms(60_000)
    assert peers.raft.role is Role.UNATTACHED


def test_a_leader_that_is_removed_while_nobody_has_it_may_be_elected_again() -> None:
    peers = a_leader(1, 2)
    peers.ask(remove_request(ME))
    peers.pass_ms(3_000)
    assert peers.raft.role is Role.RESIGNED
    peers.pass_ms(2_000)
    peers.grant(2)
    peers.grant(2)
    assert peers.raft.role is Role.LEADER


def test_a_second_voter_has_the_whole_time_for_its_first_fetch() -> None:
    peers = Peers(voters=(1,))
    peers.flush()
    peers.pass_ms(60_000)
    peers.fetched_by(2, peers.raft.end_offset, 1)
    peers.ask(add_request(2))
    peers.answer(peers.last_send(ApiVersionsRequest), versions())
    assert peers.raft.voters.ids == [1, 2]
    peers.pass_ms(2_000)
    assert peers.raft.role is Role.LEADER


def test_a_voter_reports_its_endpoints() -> None:
    peers = a_leader(1, 2, 3)
    response = peers.ask(update_request(2, 1, port=9999))
    assert isinstance(response, UpdateRaftVoterResponse)
    assert response.error_code == ErrorCode.NONE
    voter = peers.raft.voters.get(2)
    assert voter is not None
    assert voter.endpoints[0].port == 9999
    for request, code in (
        (update_request(2, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (update_request(2, 1, most=0), ErrorCode.INVALID_REQUEST),
        (update_request(4, 1), ErrorCode.REQUEST_TIMED_OUT),  # the first update isn't committed
    ):
        response = peers.ask(request)
        assert isinstance(response, UpdateRaftVoterResponse)
        assert response.error_code == code


def test_a_replica_with_auto_join_asks_to_become_a_voter() -> None:
    peers = Peers(voters=(2, 3), config=CONFIG._replace(auto_join=True, fetch_timeout_ms=100))
    peers.follow(2, 4)
    for _ in range(4):
        peers.fetch_answered(fetched(4, 2))
        peers.pass_ms(90)
    if not peers.sent(AddRaftVoterRequest):
        peers.fetch_answered(fetched(4, 2))
    (request, *_) = peers.sent(AddRaftVoterRequest)
    assert (request.voter_id, request.ack_when_committed) == (ME, False)


def test_voters_of_the_configuration_are_upgraded_when_all_have_reported() -> None:
    peers = a_leader(1, 2, static=True)
    assert peers.raft.kraft_version == 0
    assert code_of(peers.ask(remove_request(2)))[0] == ErrorCode.UNSUPPORTED_VERSION
    too_early = "Invalid upgrade of kraft.version to 1 because not all of the voters support it"
    assert peers.raft.upgrade_problem(1) == (ErrorCode.INVALID_UPDATE_VERSION, too_early)
    assert peers.raft.upgrade(1, peers.now_ms) == (ErrorCode.INVALID_UPDATE_VERSION, too_early)
    peers.ask(update_request(2, 1))
    unknown = "Invalid upgrade of kraft.version from version 0 to 2"
    assert peers.raft.upgrade(2, peers.now_ms) == (ErrorCode.INVALID_UPDATE_VERSION, unknown)
    end_offset = peers.raft.end_offset
    assert peers.raft.upgrade_problem(1) is None
    assert peers.raft.end_offset == end_offset
    assert peers.raft.upgrade(1, peers.now_ms) is None
    assert peers.raft.end_offset == end_offset + 2
    assert peers.raft.upgrade(1, peers.now_ms) is None
    assert peers.raft.end_offset == end_offset + 2, "it is the present version: nothing is written"
    assert (peers.raft.kraft_version, peers.raft.voters.is_voter(peers.raft.describe(peers.now_ms)[0][1].key)) == (
        1,
        True,
    )
    assert [voter.key.directory_id for voter in peers.raft.voters] == [directory(1), directory(2)]
    downgrade = "Invalid upgrade of kraft.version from version 1 to 0 because the new version is a downgrade"
    assert peers.raft.upgrade(0, peers.now_ms) == (ErrorCode.INVALID_UPDATE_VERSION, downgrade)
    peers.follow(2, 9)
    assert peers.raft.upgrade(1, peers.now_ms) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)


def test_truncation_restores_the_voters_of_before() -> None:
    peers = a_leader(1, 2, 3)
    before = peers.raft.end_offset
    peers.ask(remove_request(3))
    assert peers.raft.voters.ids == [1, 2]
    peers.follow(2, 9)
    data = fetched(9, 2)
    data.diverging_epoch.epoch, data.diverging_epoch.end_offset = 1, before
    peers.flush()
    peers.pass_ms(0)
    peers.fetch_answered(data)
    assert peers.raft.voters.ids == [1, 2, 3]
    assert peers.raft.voters_before(before)[1] == 1


def test_the_first_leader_copies_the_voters_of_the_format_into_the_log() -> None:
    peers = a_leader(1, 2, 3)
    (write, *_) = peers.ready.writes
    kinds = [type(control.record) for control in write.control]  # type: ignore[union-attr]
    assert kinds[1:] == [KRaftVersionRecord, VotersRecord]


def test_a_log_without_control_records_has_the_voters_of_the_configuration() -> None:
    peers = Peers(voters=(1, 2), static=True, log=RecoveredLog())
    assert (peers.raft.voters.ids, peers.raft.kraft_version) == ([1, 2], 0)
