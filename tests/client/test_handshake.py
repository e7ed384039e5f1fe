"""Tests the handshake before the first request: versions (KIP-511), then authenticators, and all of its failures."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from client.connection import OutboundConnection
from client.errors import HandshakeFailed, PeerUnavailable
from client.handshake import Question
from client.states import ConnectionState
from client.versions import OWN_API_VERSIONS, PeerVersions
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode, KafkaError, ProtocolError, error_code
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from tests.client.talk import (
    COMMON,
    HANDSHAKE_MS,
    HELLO,
    Sent,
    answer,
    api_versions,
    ask,
    connecting,
    feed,
    sent,
)

UNSUPPORTED = int(ErrorCode.UNSUPPORTED_VERSION)


def connected(**others: Any) -> tuple[OutboundConnection, Sent]:
    client = connecting(**others)
    client.connected(0, HANDSHAKE_MS)
    (hello,) = sent(client)
    return client, hello


def reply(client: OutboundConnection, request: Sent, response: object, version: int | None = None) -> None:
    version = request.version if version is None else version
    assert not feed(client, answer(response, version, request.header.correlation_id))


def test_hello_is_said_in_the_newest_version_with_this_sides_name() -> None:
    _, hello = connected()
    assert hello.version == OWN_API_VERSIONS.last
    assert hello.request == HELLO


def test_versions_and_features_are_known_once_negotiated() -> None:
    client, hello = connected()
    level = FinalizedFeatureKey(name="metadata.version", max_version_level=25, min_version_level=25)
    response = ApiVersionsResponse(error_code=0, api_keys=COMMON.api_keys, finalized_features=[level])
    reply(client, hello, response)
    assert client.state is ConnectionState.READY
    assert client.versions is not None
    assert client.versions.features == {"metadata.version": 25}
    assert client.alarm_ms == HANDSHAKE_MS
    assert not client.expire(HANDSHAKE_MS)
    assert client.state is ConnectionState.READY


@pytest.mark.parametrize(
    ("ranges", "again"),
    [
        ([(ApiKey.API_VERSIONS, 0, 3)], 3),
        ([(ApiKey.API_VERSIONS, 2, 2)], 2),
        ([], 0),
        ([(ApiKey.FETCH, 0, 4)], 0),
    ],
)
def test_a_peer_that_does_not_know_the_version_is_asked_again_in_one_that_it_does(
    ranges: list[tuple[ApiKey, int, int]], again: int
) -> None:
    client, hello = connected()
    reply(client, hello, api_versions(*ranges, error_code=UNSUPPORTED), version=0)
    (second,) = sent(client)
    assert (second.version, second.header.request_api_key) == (again, ApiKey.API_VERSIONS)
    reply(client, second, COMMON)
    assert client.state is ConnectionState.READY


@pytest.mark.parametrize(
    ("first", "last"),
    [(OWN_API_VERSIONS.last + 1, OWN_API_VERSIONS.last + 4), (3, 1), (0, OWN_API_VERSIONS.last), (-2, -1)],
)
def test_a_peer_with_no_version_in_common_is_given_up(first: int, last: int) -> None:
    client, hello = connected()
    reply(client, hello, api_versions((ApiKey.API_VERSIONS, first, last), error_code=UNSUPPORTED), version=0)
    assert isinstance(client.error, HandshakeFailed)
    assert client.error.code == ErrorCode.UNSUPPORTED_VERSION
    assert f"{first}-{last}" in str(client.error) or first > last


def test_a_peer_that_refuses_its_own_version_is_given_up() -> None:
    client, hello = connected()
    refusal = api_versions((ApiKey.API_VERSIONS, 0, 3), error_code=UNSUPPORTED)
    reply(client, hello, refusal, version=0)
    (second,) = sent(client)
    reply(client, second, refusal, version=0)
    assert isinstance(client.error, HandshakeFailed)


def test_a_peer_that_is_another_one_says_so() -> None:
    client, hello = connected()
    waiting = ask(client)
    stream = answer(api_versions(error_code=int(ErrorCode.REBOOTSTRAP_REQUIRED)), hello.version, 0)
    (outcome,) = feed(client, stream)
    assert outcome.pending is waiting
    assert isinstance(outcome.error, HandshakeFailed)
    assert outcome.error.code == ErrorCode.REBOOTSTRAP_REQUIRED
    assert client.state is ConnectionState.CLOSING


def test_a_handshake_has_an_end() -> None:
    client, _ = connected()
    assert client.alarm_ms == HANDSHAKE_MS
    client.expire(HANDSHAKE_MS)
    assert isinstance(client.error, PeerUnavailable)
    assert "ApiVersionsRequest v5 is not answered within 500 ms" in str(client.error)


def test_an_answer_that_cannot_be_read_ends_it() -> None:
    client, hello = connected()
    feed(client, answer(COMMON, hello.version, 0)[:-4].replace(b"\0\0\0", b"\0\0\0", 1) + b"\xff" * 4)
    assert isinstance(client.error, ProtocolError)


# Authenticators.


def token(text: bytes) -> object:
    def authenticator(versions: PeerVersions) -> Generator[Question, object, None]:
        assert versions.ranges[ApiKey.SASL_AUTHENTICATE] == (0, 2)
        response = yield Question(SaslAuthenticateRequest(auth_bytes=text), SaslAuthenticateResponse)
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code:
            raise KafkaError(error_code(response.error_code))

    return authenticator


ACCEPTED = SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"")


def negotiated(*authenticators: object) -> tuple[OutboundConnection, Sent]:
    client, hello = connected(authenticators=authenticators)
    reply(client, hello, COMMON)
    assert client.state is ConnectionState.AUTHENTICATING
    (question,) = sent(client)
    return client, question


def test_authenticators_speak_one_after_the_other_and_requests_wait_for_them() -> None:
    client, first = negotiated(token(b"one"), token(b"two"))
    ask(client)
    assert getattr(first.request, "auth_bytes", None) == b"one"
    reply(client, first, ACCEPTED)
    (second,) = sent(client)
    assert getattr(second.request, "auth_bytes", None) == b"two"
    assert client.state is ConnectionState.AUTHENTICATING
    reply(client, second, ACCEPTED)
    assert client.state is ConnectionState.READY
    assert [request.header.request_api_key for request in sent(client)] == [ApiKey.METADATA]


def test_who_is_not_let_in_learns_why() -> None:
    client, question = negotiated(token(b"one"), token(b"two"))
    refusal = SaslAuthenticateResponse(error_code=58, error_message=None, auth_bytes=b"")
    reply(client, question, refusal)
    assert isinstance(client.error, HandshakeFailed)
    assert client.error.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not sent(client)


def test_an_authenticator_that_fails_ends_the_connection_with_its_reason() -> None:
    def broken(versions: PeerVersions) -> Generator[Question, object, None]:
        yield Question(SaslAuthenticateRequest(auth_bytes=b""), SaslAuthenticateResponse)
        raise LookupError("no ticket")

    client, question = negotiated(broken)
    reply(client, question, ACCEPTED)
    assert isinstance(client.error, HandshakeFailed)
    assert "LookupError: no ticket" in str(client.error)


def test_an_authenticator_whose_api_the_peer_lacks_ends_the_connection() -> None:
    def voter(versions: PeerVersions) -> Generator[Question, object, None]:
        yield Question(VoteRequest(cluster_id=None, topics=[]), VoteResponse)

    client, hello = connected(authenticators=[voter])
    reply(client, hello, COMMON)
    assert isinstance(client.error, HandshakeFailed)
    assert "VOTE" in str(client.error)


def test_an_authenticator_at_work_learns_of_the_end() -> None:
    ended = []

    def patient(versions: PeerVersions) -> Generator[Question, object, None]:
        try:
            yield Question(SaslAuthenticateRequest(auth_bytes=b""), SaslAuthenticateResponse)
        finally:
            ended.append(True)

    client, _ = negotiated(patient)
    client.lost()
    assert ended == [True]


def test_the_handshakes_time_is_for_all_of_it() -> None:
    client, question = negotiated(token(b"one"), token(b"two"))
    reply(client, question, ACCEPTED)
    client.expire(HANDSHAKE_MS)
    assert "SaslAuthenticateRequest v2 is not answered" in str(client.error)


def test_the_request_of_hello_is_the_callers() -> None:
    hello = ApiVersionsRequest(client_software_name="odradek", client_software_version="1", cluster_id="c", node_id=3)
    client = OutboundConnection("peer", client_id=None, hello=hello)
    client.connected(0, 1)
    (request,) = sent(client)
    assert request.request == hello
    assert request.header.client_id is None
