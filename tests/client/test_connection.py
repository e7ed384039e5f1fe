"""Tests the client's side of a connection: its states, the order of requests, its deadlines and its end."""

from __future__ import annotations

import pytest

from client.connection import MAX_CORRELATION_ID
from client.errors import ConnectionClosed, PeerUnavailable, RequestTimedOut, UnsupportedVersion
from client.pending import InFlightLimits, RequestOutcome
from client.states import NEXT, ConnectionEvent, ConnectionState, after
from protocol.errors import ProtocolError
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from protocol.messages.vote import VoteRequest, VoteResponse
from tests.client.talk import METADATA, METADATA_ANSWER, answer, ask, connecting, feed, ready, sent

VERSION = 12
LIFE = (
    (ConnectionEvent.CONNECTED, ConnectionState.NEGOTIATING),
    (ConnectionEvent.NEGOTIATED, ConnectionState.AUTHENTICATING),
    (ConnectionEvent.AUTHENTICATED, ConnectionState.READY),
    (ConnectionEvent.CLOSE, ConnectionState.CLOSING),
    (ConnectionEvent.LOST, ConnectionState.CLOSED),
)


def metadata_answer(correlation_id: int, cluster_id: str = "c") -> bytes:
    return answer(MetadataResponse(brokers=[], topics=[], cluster_id=cluster_id), VERSION, correlation_id)


def only(outcomes: list[RequestOutcome]) -> RequestOutcome:
    (outcome,) = outcomes
    return outcome


def test_a_life_goes_through_all_states_in_their_order() -> None:
    state = ConnectionState.CONNECTING
    for event, following in LIFE:
        state = after(state, event)
        assert state is following
    assert {state for state, _ in NEXT} == set(ConnectionState)


@pytest.mark.parametrize("state", ConnectionState)
def test_any_state_can_be_closed_and_lost(state: ConnectionState) -> None:
    assert after(state, ConnectionEvent.CLOSE) in (ConnectionState.CLOSING, ConnectionState.CLOSED)
    assert after(state, ConnectionEvent.LOST) is ConnectionState.CLOSED


@pytest.mark.parametrize("state", ConnectionState)
@pytest.mark.parametrize("event", ConnectionEvent)
def test_what_is_not_in_the_table_is_an_error_that_names_both(state: ConnectionState, event: ConnectionEvent) -> None:
    if (state, event) not in NEXT:
        with pytest.raises(ValueError, match=f"{state.value}.*{event.value}"):
            after(state, event)


def test_a_request_carries_the_highest_common_version_and_gets_its_answer() -> None:
    client = ready()
    pending = ask(client)
    (request,) = sent(client)
    assert (request.header.request_api_key, request.version, request.header.client_id) == (3, VERSION, "me")
    assert request.request == METADATA
    outcome = only(feed(client, metadata_answer(request.header.correlation_id)))
    assert outcome == (pending, METADATA_ANSWER, None)
    assert client.idle


def test_the_caller_bounds_the_version() -> None:
    client = ready()
    client.request(METADATA, MetadataResponse, now_ms=0, timeout_ms=10, max_version=4)
    assert [request.version for request in sent(client)] == [4]


@pytest.mark.parametrize(
    ("request_", "response", "max_version", "problem"),
    [
        (VoteRequest(cluster_id=None, topics=[]), VoteResponse, 99, r"versions none of VOTE \(52\)"),
        (METADATA, MetadataResponse, -1, "-1 is the highest that the caller allows"),
    ],
)
def test_a_request_without_a_common_version_fails_and_leaves_the_connection(
    request_: object, response: type, max_version: int, problem: str
) -> None:
    client = ready()
    _, outcomes = client.request(request_, response, now_ms=0, timeout_ms=10, max_version=max_version)
    with pytest.raises(UnsupportedVersion, match=problem):
        raise only(outcomes).error or AssertionError
    assert not sent(client)
    assert client.state is ConnectionState.READY


def test_what_cannot_be_encoded_fails_alone() -> None:
    client = ready()
    _, outcomes = client.request(MetadataRequest(topics=7), MetadataResponse, now_ms=0, timeout_ms=10)  # type: ignore[arg-type]
    assert isinstance(only(outcomes).error, TypeError)
    pending = ask(client)
    (request,) = sent(client)
    assert only(feed(client, metadata_answer(request.header.correlation_id))).pending is pending


def test_answers_belong_to_requests_in_their_order() -> None:
    client = ready()
    first, second = ask(client), ask(client)
    one, two = (request.header.correlation_id for request in sent(client))
    assert one != two
    outcomes = feed(client, metadata_answer(one, "1") + metadata_answer(two, "2"))
    assert [outcome.pending for outcome in outcomes] == [first, second]
    assert [getattr(outcome.response, "cluster_id", None) for outcome in outcomes] == ["1", "2"]


def test_an_answer_out_of_order_breaks_the_connection() -> None:
    client = ready()
    ask(client), ask(client)
    one, two = (request.header.correlation_id for request in sent(client))
    first, second = feed(client, metadata_answer(two) + metadata_answer(one))
    assert str(first.error) == (
        f"127.0.0.1:9092: an answer has correlation id {two}, MetadataRequest v12 ({one}) is next (at byte 0)"
    )
    assert isinstance(first.error, ProtocolError)
    assert isinstance(second.error, PeerUnavailable)
    assert second.error.sent
    assert client.state is ConnectionState.CLOSING


def test_an_answer_to_nothing_breaks_the_connection() -> None:
    client = ready()
    assert not feed(client, metadata_answer(1))
    assert "no request is unanswered" in str(client.error)
    assert isinstance(
        only(client.request(METADATA, MetadataResponse, now_ms=0, timeout_ms=9)[1]).error, PeerUnavailable
    )


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (b"\0\0\0\x02ab", "2 bytes has no header"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes is announced"),
        (
            b"\x7f\xff\xff\xff",
            r"a frame of 2147483647 bytes is announced, 0 to 1000 are allowed \(max_response_bytes\)",
        ),
        (b"\0\0\0\x05\0\0\0\x01\0", r"the answer to MetadataRequest v12: .* \(at byte \d+\)"),
    ],
)
def test_bytes_that_are_no_answer_break_the_connection_and_are_named(stream: bytes, problem: str) -> None:
    client = ready(InFlightLimits(max_response_bytes=1000))
    ask(client)
    outcome = only(feed(client, stream))
    with pytest.raises(ProtocolError, match=f"^127.0.0.1:9092: .*{problem}"):
        raise outcome.error or AssertionError
    assert client.state is ConnectionState.CLOSING


def test_bytes_behind_an_answer_break_the_connection() -> None:
    client = ready()
    ask(client)
    (request,) = sent(client)
    whole = metadata_answer(request.header.correlation_id)
    longer = (len(whole) - 4 + 3).to_bytes(4, "big") + whole[4:] + b"abc"
    assert "3 bytes follow the end of the response" in str(only(feed(client, longer)).error)


def test_correlation_ids_begin_anew_behind_the_last() -> None:
    client = ready()
    client._next_id = MAX_CORRELATION_ID
    first, second = ask(client), ask(client)
    assert [request.header.correlation_id for request in sent(client)] == [MAX_CORRELATION_ID, 0]
    assert (first.sent, second.sent) == (True, True)
    assert len(feed(client, metadata_answer(MAX_CORRELATION_ID) + metadata_answer(0))) == 2


def test_no_more_are_in_flight_than_may_be_and_the_rest_go_in_their_order() -> None:
    client = ready(InFlightLimits(max_in_flight=2))
    pending = [ask(client) for _ in range(5)]
    first = sent(client)
    assert len(first) == 2
    order = []
    for request in first:
        order += feed(client, metadata_answer(request.header.correlation_id))
    rest = sent(client)
    assert len(rest) == 2
    for request in rest:
        order += feed(client, metadata_answer(request.header.correlation_id))
    (last,) = sent(client)
    order += feed(client, metadata_answer(last.header.correlation_id))
    assert [outcome.pending for outcome in order] == pending


def test_a_request_larger_than_the_bytes_that_may_be_in_flight_goes_alone_and_keeps_its_turn() -> None:
    client = ready(InFlightLimits(max_in_flight_bytes=100))
    large = PartitionProduceData(index=0, records=bytes(1000))
    produce = ProduceRequest(acks=1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[large])])
    client.request(produce, ProduceResponse, now_ms=0, timeout_ms=1000)
    ask(client)
    (request,) = sent(client)
    assert isinstance(request.request, ProduceRequest)
    feed(client, answer(ProduceResponse(responses=[]), VERSION, request.header.correlation_id))
    assert len(sent(client)) == 1


def test_nothing_goes_out_while_the_transport_is_full() -> None:
    client = ready()
    client.pause_writing()
    ask(client)
    assert not sent(client)
    assert not client.resume_writing(0)
    assert len(sent(client)) == 1


def test_large_records_go_out_as_they_are() -> None:
    client = ready()
    records = memoryview(bytes(100_000))
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    client.request(ProduceRequest(acks=1, timeout_ms=1, topic_data=[data]), ProduceResponse, now_ms=0, timeout_ms=10)
    assert any(buffer is records for buffer in client.outgoing())


def test_a_produce_without_acks_is_done_once_it_is_sent() -> None:
    client = ready()
    silent = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    pending, outcomes = client.request(silent, None, now_ms=0, timeout_ms=10)
    assert only(outcomes) == (pending, None, None)
    assert client.idle
    ask(client)
    request = sent(client)[1]
    assert only(feed(client, metadata_answer(request.header.correlation_id))).error is None


@pytest.mark.parametrize(("acks", "response"), [(0, ProduceResponse), (1, None), (-1, None)])
def test_who_expects_an_answer_that_never_comes_is_refused(acks: int, response: type | None) -> None:
    with pytest.raises(ValueError, match="answered"):
        ready().request(ProduceRequest(acks=acks, timeout_ms=1, topic_data=[]), response, now_ms=0, timeout_ms=10)


def test_an_answer_of_another_api_is_not_accepted_as_expected() -> None:
    _, outcomes = ready().request(METADATA, ProduceResponse, now_ms=0, timeout_ms=10)
    assert "ProduceResponse does not answer MetadataRequest" in str(only(outcomes).error)


# Deadlines.


def test_a_peer_that_does_not_answer_the_oldest_request_in_time_is_taken_for_gone() -> None:
    client = ready()
    ask(client, now_ms=0, timeout_ms=100)
    ask(client, now_ms=50, timeout_ms=1000)
    assert client.alarm_ms == 100
    assert not client.expire(99)
    first, second = client.expire(100)
    assert isinstance(first.error, RequestTimedOut)
    assert str(first.error) == "127.0.0.1:9092: no answer to MetadataRequest v12 within 100 ms"
    assert first.error.sent
    assert isinstance(second.error, PeerUnavailable)
    assert client.state is ConnectionState.CLOSING
    assert client.alarm_ms is None


def test_a_late_answer_is_dropped_and_not_taken_for_another() -> None:
    client = ready()
    ask(client, timeout_ms=1000)
    ask(client, timeout_ms=100)
    slow, late = (request.header.correlation_id for request in sent(client))
    assert isinstance(only(client.expire(100)).error, RequestTimedOut)
    assert client.state is ConnectionState.READY
    after_it = ask(client, now_ms=150)
    (request,) = sent(client)
    stream = metadata_answer(slow, "slow") + metadata_answer(late, "late")
    outcomes = feed(client, stream + metadata_answer(request.header.correlation_id, "next"), now_ms=200)
    assert [getattr(outcome.response, "cluster_id", None) for outcome in outcomes] == ["slow", "next"]
    assert outcomes[1].pending is after_it


def test_a_late_answer_that_never_comes_ends_the_connection_in_its_requests_time_after_it_was_due() -> None:
    client = ready()
    ask(client, timeout_ms=1000)
    ask(client, timeout_ms=100)
    slow, _ = (request.header.correlation_id for request in sent(client))
    client.expire(100)
    feed(client, metadata_answer(slow), now_ms=500)
    assert client.alarm_ms is not None
    assert client.alarm_ms <= 600
    assert not client.expire(599)
    assert client.state is ConnectionState.READY
    assert not client.expire(600)
    assert client.state is ConnectionState.CLOSING
    assert "MetadataRequest v12 is not answered within 100 ms" in str(client.error)


def test_a_request_that_waits_for_room_beyond_its_time_is_never_sent() -> None:
    client = ready(InFlightLimits(max_in_flight=1))
    ask(client, timeout_ms=1000)
    waiting = ask(client, timeout_ms=10)
    (request,) = sent(client)
    outcome = only(client.expire(10))
    assert outcome.pending is waiting
    assert isinstance(outcome.error, RequestTimedOut)
    assert not outcome.error.sent
    feed(client, metadata_answer(request.header.correlation_id), now_ms=11)
    assert not sent(client)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_without_time_is_not_sent(timeout_ms: int) -> None:
    client = ready()
    _, outcomes = client.request(METADATA, MetadataResponse, now_ms=5, timeout_ms=timeout_ms)
    assert isinstance(only(outcomes).error, RequestTimedOut)
    assert not sent(client)


def test_an_alarm_is_set_while_anything_is_awaited_and_only_then() -> None:
    client = ready()
    client.expire(10_000)
    assert client.alarm_ms is None
    ask(client, now_ms=10_000, timeout_ms=70)
    assert client.alarm_ms == 10_070


def test_an_abandoned_request_keeps_its_place_and_its_answer_is_dropped() -> None:
    client = ready()
    client.abandon(ask(client))
    pending = ask(client)
    streams = [metadata_answer(request.header.correlation_id) for request in sent(client)]
    assert only(feed(client, b"".join(streams))).pending is pending


def test_an_abandoned_request_that_waits_is_not_sent() -> None:
    client = ready(InFlightLimits(max_in_flight=1))
    ask(client)
    waiting = ask(client)
    client.abandon(waiting)
    (request,) = sent(client)
    feed(client, metadata_answer(request.header.correlation_id))
    assert not sent(client)
    assert client.idle


# Ends.


def test_closing_ends_what_is_unanswered_with_a_clear_error() -> None:
    client = ready(InFlightLimits(max_in_flight=1))
    ask(client)
    ask(client)
    first, second = client.close()
    assert isinstance(first.error, ConnectionClosed)
    assert str(first.error).endswith("no answer to MetadataRequest v12: this side closed the connection")
    assert (first.error.sent, getattr(second.error, "sent", None)) == (True, False)
    assert not feed(client, b"anything")
    assert not client.lost()
    assert client.state is ConnectionState.CLOSED


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset by peer")])
def test_a_lost_connection_ends_what_is_unanswered(error: Exception | None) -> None:
    client = ready()
    ask(client)
    outcome = only(client.lost(error))
    assert isinstance(outcome.error, PeerUnavailable)
    assert outcome.error.sent
    assert ("reset by peer" if error else "the peer closed the connection") in str(outcome.error)
    assert not client.lost()
    _, outcomes = client.request(METADATA, MetadataResponse, now_ms=0, timeout_ms=10)
    assert isinstance(only(outcomes).error, PeerUnavailable)


def test_requests_made_before_it_is_ready_wait_for_it() -> None:
    client = connecting()
    ask(client)
    assert not sent(client)
    outcome = only(client.lost(OSError("refused")))
    assert getattr(outcome.error, "sent", None) is False


def test_one_end_is_not_another() -> None:
    client = ready()
    feed(client, b"\xff" * 4)
    error = client.error
    assert not client.close()
    assert not client.lost()
    assert client.error is error


def test_a_connection_that_is_closed_while_it_is_made_says_nothing() -> None:
    client = connecting()
    client.close()
    client.connected(0, 100)
    assert not sent(client)
    assert client.state is ConnectionState.CLOSING
