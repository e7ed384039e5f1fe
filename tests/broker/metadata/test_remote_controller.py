"""Tests requests to a remote controller: their sender, and answers without a top-level error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pytest

from broker.metadata.controllers import Controllers
from broker.metadata.remote_controller import RemoteController, code_of_all
from coordinator.cluster.controller import Asker
from coordinator.cluster.requester import Requester
from protocol.codec import decode, encode
from protocol.errors import ErrorCode
from protocol.messages import create_topics, delete_topics, elect_leaders
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from protocol.messages.header import RequestHeader
from protocol.messages.principal import DefaultPrincipalData
from protocol.messages.update_features import UpdateFeaturesResponse
from protocol.versions import ANY_VERSION
from tests.coordinator.cluster.given import creatable

ALICE = Requester("User", "alice", "a-client", "127.0.0.1")
REQUEST = CreateTopicsRequest(topics=[creatable("orders", 1, 1)], timeout_ms=5)
CREATED = CreateTopicsResponse(
    topics=[create_topics.CreatableTopicResult(name="orders", error_message=None, error_code=0)]
)
LAST = 7
HEADER_BYTES = 5
"""Bytes of the header of an answer in an envelope: the correlation id, and no tags."""


class Sent(NamedTuple):
    request: object
    max_version: int


class OneController:
    """A controller that records its requests, and always gives the same answer."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.sent: list[Sent] = []

    async def send(
        self,
        request: object,
        response: type[object],
        timeout_ms: int,
        code_of: Callable[[Any], int],
        *,
        max_version: int = ANY_VERSION,
    ) -> object:
        self.sent.append(Sent(request, max_version))
        assert code_of(self.answer) == ErrorCode.NONE
        return self.answer


def remote(controller: OneController) -> RemoteController:
    return RemoteController(cast(Controllers, controller), session_ms=9_000)


async def test_what_a_broker_wants_itself_goes_under_its_own_name_and_so_in_no_envelope() -> None:
    controller = OneController(CREATED)
    assert await remote(controller).submit(REQUEST, CreateTopicsResponse) is CREATED
    assert controller.sent == [Sent(REQUEST, LAST)]


async def test_a_version_that_a_request_is_made_for_is_not_exceeded() -> None:
    controller = OneController(DeleteTopicsResponse(responses=[]))
    request = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5)
    await remote(controller).submit(request, DeleteTopicsResponse, Asker(version=5))
    assert controller.sent == [Sent(request, 5)]


async def test_what_a_client_wants_goes_in_an_envelope_that_names_it() -> None:
    answer = bytes(HEADER_BYTES) + encode(CREATED, LAST)
    controller = OneController(EnvelopeResponse(response_data=answer, error_code=0))
    assert await remote(controller).submit(REQUEST, CreateTopicsResponse, Asker(ALICE)) == CREATED
    ((wrapped, _),) = controller.sent
    assert isinstance(wrapped, EnvelopeRequest)
    assert wrapped.request_principal is not None
    principal, _ = decode(DefaultPrincipalData, 0, wrapped.request_principal, 2)
    assert (principal.type, principal.name) == ("User", "alice")
    header, position = decode(RequestHeader, 2, wrapped.request_data)
    assert header.client_id == "a-client"
    assert decode(CreateTopicsRequest, LAST, wrapped.request_data, position)[0] == REQUEST


NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER
ELECTED = elect_leaders.PartitionResult(partition_id=0, error_code=NOT_CONTROLLER, error_message=None)


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (CREATED, ErrorCode.NONE),
        (UpdateFeaturesResponse(error_code=NOT_CONTROLLER, results=[], error_message=""), NOT_CONTROLLER),
        (UpdateFeaturesResponse(error_code=ErrorCode.INVALID_REQUEST, results=[], error_message=""), ErrorCode.NONE),
        (
            CreateTopicsResponse(
                topics=[
                    create_topics.CreatableTopicResult(name="a", error_code=ErrorCode.TOPIC_ALREADY_EXISTS),
                    create_topics.CreatableTopicResult(name="b", error_code=NOT_CONTROLLER),
                ]
            ),
            NOT_CONTROLLER,
        ),
        (
            DeleteTopicsResponse(responses=[delete_topics.DeletableTopicResult(name="a", error_code=NOT_CONTROLLER)]),
            NOT_CONTROLLER,
        ),
        (
            elect_leaders.ElectLeadersResponse(
                error_code=0,
                replica_election_results=[elect_leaders.ReplicaElectionResult(topic="a", partition_result=[ELECTED])],
            ),
            NOT_CONTROLLER,
        ),
    ],
)
def test_a_controller_that_leads_no_more_may_say_so_of_each_item_alone(response: object, code: ErrorCode) -> None:
    assert code_of_all(response) == code
