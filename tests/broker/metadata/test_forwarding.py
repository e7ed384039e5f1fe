"""Tests requests in Envelopes: the request and the response inside, and other answers of controllers."""

from __future__ import annotations

import pytest

from broker.metadata.forwarding import address_bytes, body, envelope
from coordinator.cluster.requester import Requester
from protocol.codec import decode, encode
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.envelope import EnvelopeResponse
from protocol.messages.header import RequestHeader
from protocol.messages.principal import DefaultPrincipalData

ALICE = Requester("User", "alice", "a-client", "127.0.0.1")
REQUEST = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5)


@pytest.mark.parametrize(("version", "header_version"), [(3, 1), (4, 2), (5, 2)])
def test_an_envelope_has_the_client_s_request_as_it_would_send_it(version: int, header_version: int) -> None:
    data = envelope(REQUEST, version, ALICE).request_data
    header, position = decode(RequestHeader, header_version, data)
    assert (header.request_api_key, header.request_api_version, header.client_id) == (20, version, "a-client")
    assert decode(DeleteTopicsRequest, version, data, position)[0] == REQUEST


def test_an_envelope_names_who_asks() -> None:
    wrapped = envelope(REQUEST, 5, ALICE)
    assert wrapped.request_principal is not None
    assert wrapped.request_principal[:2] == b"\x00\x00"
    principal = decode(DefaultPrincipalData, 0, wrapped.request_principal, 2)[0]
    assert principal == DefaultPrincipalData(type="User", name="alice", token_authenticated=False)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", b"\x7f\x00\x00\x01"),
        ("::1", bytes(15) + b"\x01"),
        ("fe80::1%eth0", b"\xfe\x80" + bytes(13) + b"\x01"),
        ("unknown", bytes(4)),
    ],
)
def test_an_address_is_written_as_java_has_it(host: str, expected: bytes) -> None:
    assert address_bytes(host) == expected


@pytest.mark.parametrize(("version", "header"), [(3, b"\x00\x00\x00\x00"), (5, b"\x00\x00\x00\x00\x00")])
def test_the_answer_inside_is_handed_back_without_its_header(version: int, header: bytes) -> None:
    assert body(EnvelopeResponse(response_data=header + b"the body", error_code=0), REQUEST, version) == b"the body"


def test_a_version_that_the_controller_does_not_know_is_told_as_such() -> None:
    with pytest.raises(KafkaError) as error:
        body(EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), REQUEST, 5)
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("code", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST, 0])
def test_what_is_wrong_with_an_envelope_is_no_client_s_fault(code: int) -> None:
    with pytest.raises(KafkaError) as error:
        body(EnvelopeResponse(error_code=code), REQUEST, 5)
    assert error.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x00"])
def test_an_answer_that_is_cut_short_is_none(data: bytes) -> None:
    with pytest.raises((IndexError, ProtocolError)):
        body(EnvelopeResponse(response_data=data, error_code=0), REQUEST, 5)


def test_encoding_and_decoding_agree() -> None:
    wrapped = envelope(REQUEST, 5, ALICE)
    assert decode(type(wrapped), 0, encode(wrapped, 0))[0] == wrapped
