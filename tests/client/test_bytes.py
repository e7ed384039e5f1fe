"""Tests a connection with any bytes from the peer, in pieces of any size: it returns answers or an error."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.connection import OutboundConnection
from client.errors import HandshakeFailed, PeerUnavailable
from client.pending import InFlightLimits
from client.states import ConnectionState
from client.versions import OWN_API_VERSIONS
from protocol.errors import ProtocolError
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from protocol.messages.metadata import MetadataResponse
from tests.client.talk import (
    COMMON,
    HANDSHAKE_MS,
    METADATA_ANSWER,
    answer,
    ask,
    connecting,
    feed,
    ready,
    sent,
)

VERSION = 12
SMALL = InFlightLimits(max_response_bytes=1000)
CONNECTION_IDS = st.integers(0, 3)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def check_end(client: OutboundConnection) -> None:
    """Checks that a connection that has ended has an error that a peer can cause."""
    if client.state is ConnectionState.CLOSING:
        assert isinstance(client.error, ProtocolError | HandshakeFailed)
    else:
        assert client.error is None


def stream_of_answers() -> bytes:
    """Returns a peer's answers to `hello` and three requests."""
    answers = [answer(METADATA_ANSWER, VERSION, number) for number in (1, 2, 3)]
    return answer(COMMON, OWN_API_VERSIONS.last, 0) + b"".join(answers)


@pytest.mark.parametrize("piece_bytes", range(1, 40))
def test_pieces_of_any_size_give_the_same(piece_bytes: int) -> None:
    client = connecting()
    client.connected(0, HANDSHAKE_MS)
    pending = [ask(client) for _ in range(3)]
    outcomes = feed(client, stream_of_answers(), piece_bytes=piece_bytes)
    assert [outcome.pending for outcome in outcomes] == pending
    assert [outcome.response for outcome in outcomes] == [METADATA_ANSWER] * 3


def test_a_stream_that_ends_at_any_byte_ends_what_is_unanswered() -> None:
    stream = stream_of_answers()
    for end in range(len(stream)):
        client = connecting()
        client.connected(0, HANDSHAKE_MS)
        for _ in range(3):
            ask(client)
        outcomes = feed(client, stream[:end]) + client.lost()
        assert len(outcomes) == 3
        assert all(outcome.error is None or isinstance(outcome.error, PeerUnavailable) for outcome in outcomes)
        assert isinstance(outcomes[-1].error, PeerUnavailable)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_in_the_handshake_give_a_connection_or_an_error(stream: bytes, piece_bytes: int) -> None:
    client = connecting(SMALL)
    client.connected(0, HANDSHAKE_MS)
    feed(client, stream, piece_bytes=piece_bytes)
    check_end(client)


@given(CONNECTION_IDS, st.binary(max_size=200))
def test_any_answer_to_hello_gives_a_connection_or_an_error(correlation_id: int, body: bytes) -> None:
    client = connecting(SMALL)
    client.connected(0, HANDSHAKE_MS)
    feed(client, framed(struct.pack(">i", correlation_id) + body))
    check_end(client)


@given(st.lists(st.tuples(CONNECTION_IDS, st.binary(max_size=120)), max_size=5), st.integers(1, 50))
def test_any_answers_to_requests_give_values_or_errors(answers: list[tuple[int, bytes]], piece_bytes: int) -> None:
    client = ready(SMALL)
    pending = [ask(client) for _ in range(3)]
    stream = b"".join(framed(struct.pack(">i", correlation_id) + body) for correlation_id, body in answers)
    outcomes = feed(client, stream, piece_bytes=piece_bytes)
    check_end(client)
    for outcome in outcomes:
        assert outcome.pending in pending
        assert isinstance(outcome.response, MetadataResponse) or isinstance(
            outcome.error, ProtocolError | PeerUnavailable
        )
    ended = [outcome.pending for outcome in outcomes]
    assert len({id(one) for one in ended}) == len(ended), "a request ends once"
    if client.state is ConnectionState.CLOSING:
        assert len(outcomes) == len(pending), "each request ends"


@given(st.data())
def test_a_good_answer_with_one_byte_changed_gives_a_value_or_an_error(data: st.DataObject) -> None:
    client = ready(SMALL)
    ask(client)
    (request,) = sent(client)
    good = bytearray(answer(METADATA_ANSWER, VERSION, request.header.correlation_id))
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    for outcome in feed(client, bytes(good)):
        assert outcome.error is None or isinstance(outcome.error, ProtocolError)
    check_end(client)


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 30])
def test_records_in_an_answer_are_nobody_elses(piece_bytes: int) -> None:
    client = ready()
    records = bytes(range(256)) * 8
    fetched = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[fetched])])
    streams = []
    for _ in range(2):
        client.request(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), FetchResponse, now_ms=0, timeout_ms=9)
        (request,) = sent(client)
        streams.append(answer(response, VERSION, request.header.correlation_id))
    outcomes = feed(client, b"".join(streams), piece_bytes=piece_bytes)
    assert [outcome.response for outcome in outcomes] == [response, response]


def test_the_records_of_a_large_answer_are_views_of_the_buffer_that_they_were_read_into() -> None:
    client = ready()
    fetched = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=bytes(200_000))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[fetched])])
    client.request(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), FetchResponse, now_ms=0, timeout_ms=9)
    (request,) = sent(client)
    stream = answer(response, VERSION, request.header.correlation_id)
    feed(client, stream[:150_000])  # by then it has all of its room
    target = client.target()
    assert target is not None
    target[:] = stream[150_000:]
    (outcome,) = client.filled(len(target), 0)
    assert isinstance(outcome.response, FetchResponse)
    read = outcome.response.responses[0].partitions[0].records
    assert isinstance(read, memoryview)
    assert read.obj is target.obj
