"""The raft core's requests and answers in every version of their APIs."""

from __future__ import annotations

import pytest

from protocol.codec import decode, encode
from protocol.errors import ErrorCode
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.vote import VoteRequest, VoteResponse
from tests.coordinator.quorum.rafts import Peers, begin_request, end_request, fetch_request, vote_request


@pytest.mark.parametrize("version", [0, 1])
def test_a_vote_of_an_older_version_names_no_directory(version: int) -> None:
    peers = Peers()
    request, _ = decode(VoteRequest, version, encode(vote_request(2, 4), version))
    response = peers.ask(request, version)
    assert isinstance(response, VoteResponse)
    data = response.topics[0].partitions[0]
    assert (data.error_code, data.vote_granted) == (ErrorCode.NONE, True)
    assert decode(VoteResponse, version, encode(response, version))[0].topics == response.topics


def test_a_vote_without_a_directory_is_for_any_directory_of_the_candidate() -> None:
    peers = Peers()
    request, _ = decode(VoteRequest, 0, encode(vote_request(2, 4), 0))
    peers.ask(request, 0)
    response = peers.ask(request, 0)  # a repeated request
    assert isinstance(response, VoteResponse)
    assert response.topics[0].partitions[0].vote_granted


@pytest.mark.parametrize("version", [0, 1])
def test_begin_and_end_of_an_epoch_are_understood_in_every_version(version: int) -> None:
    peers = Peers()
    peers.ask(decode(BeginQuorumEpochRequest, version, encode(begin_request(2, 4), version))[0], version)
    assert peers.raft.leader_id == 2
    sent = end_request(2, 4, [1, 3])
    sent.topics[0].partitions[0].preferred_successors = [1, 3]
    peers.ask(decode(EndQuorumEpochRequest, version, encode(sent, version))[0], version)
    assert peers.raft.role.value == "Prospective"


@pytest.mark.parametrize("version", range(12, 19))
def test_a_fetch_is_answered_in_every_version_of_the_quorum(version: int) -> None:
    peers = Peers()
    peers.elect()
    request = fetch_request(2, 1, 0, 0)
    request.replica_id, request.topics[0].topic = 2, "__cluster_metadata"
    decoded, _ = decode(FetchRequest, version, encode(request, version))
    response = peers.ask(decoded, version)
    assert response is not None
    read = next(reply.read for reply in peers.ready.replies if reply.response is response)
    assert read is not None
    encode(response, version)


@pytest.mark.parametrize("version", [0, 1])
def test_what_the_core_sends_can_be_sent_in_older_versions(version: int) -> None:
    peers = Peers()
    peers.elect()
    peers.raft.resign(1, peers.now_ms)
    peers.pass_ms(10)
    for request in [*peers.sent(BeginQuorumEpochRequest), *peers.sent(EndQuorumEpochRequest)]:
        decode(type(request), version, encode(request, version))
    for vote in peers.sent(VoteRequest):
        if not vote.topics[0].partitions[0].pre_vote:  # version 2 is the first with pre-votes
            decode(VoteRequest, version, encode(vote, version))
