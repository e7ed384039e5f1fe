"""The proxy that reads responses with Apache Kafka's classes finds each kind of defect."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.codec import encode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.produce import ProduceRequest
from tests.broker.asking import batch, fetch_request, produce_request
from tests.interop.processes import free_port
from tests.interop.suites.decoder import Decoded, Decoder
from tests.wire import CORRELATION_ID, WireClient, request_frame

FETCH, LIST_GROUPS = 12, 5
FLEXIBLE_HEADER = struct.pack(">ib", CORRELATION_ID, 0)


class PreparedBroker:
    """A broker that gives one client the prepared answer to each frame; an empty one is not sent."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.answers: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        with client, client.makefile("rb") as frames:
            while size := frames.read(4):
                frames.read(*struct.unpack(">i", size))
                if answer := self.answers.pop(0):
                    client.sendall(struct.pack(">i", len(answer)) + answer)

    def close(self) -> None:
        self._server.close()


class Proxied:
    """A client, the proxy and the broker behind it."""

    def __init__(self, log: Path) -> None:
        self.broker = PreparedBroker()
        self.decoder = Decoder(log)
        port = free_port()
        self.decoder.proxy(port, self.broker.port)
        self.client = WireClient(f"127.0.0.1:{port}")

    def send(self, request: object, version: int, answer: bytes = b"") -> None:
        self.broker.answers.append(answer)
        self.client.socket.sendall(request_frame(request, version))

    def ask(self, request: object, version: int, answer: bytes) -> Decoded:
        """Passes a request and its answer, and returns what the proxy has read so far."""
        self.send(request, version, answer)
        assert self.client.receive() == answer
        return self.decoder.report()

    def close(self) -> None:
        self.broker.close()
        self.decoder.close()


@pytest.fixture
def through(tmp_path: Path) -> Iterator[Proxied]:
    both = Proxied(tmp_path / "decoder.log")
    yield both
    both.close()


def fetched(records: bytes) -> bytes:
    partition = PartitionData(partition_index=0, error_code=0, high_watermark=1, records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    return encode(response, FETCH, FLEXIBLE_HEADER)


def groups(error_code: int = 0) -> bytes:
    return encode(ListGroupsResponse(error_code=error_code, groups=[]), LIST_GROUPS, FLEXIBLE_HEADER)


def test_whole_responses_are_counted_by_api_and_version(through: Proxied) -> None:
    through.ask(fetch_request("t"), FETCH, fetched(batch(b"a", b"b") + batch(b"c")[:20]))
    through.ask(ListGroupsRequest(), LIST_GROUPS, groups())
    assert through.ask(ListGroupsRequest(), LIST_GROUPS, groups()) == Decoded(
        {"FETCH": {"12": 1}, "LIST_GROUPS": {"5": 2}}, {}, []
    )


def test_versions_that_kafka_no_longer_has_are_passed_and_counted(through: Proxied) -> None:
    assert through.ask(fetch_request("t"), 0, b"\0\0\0\7any bytes") == Decoded({}, {"FETCH": {"0": 1}}, [])


def test_the_answer_to_an_unknown_version_of_api_versions_has_version_0(through: Proxied) -> None:
    request = request_frame(ApiVersionsRequest(), 0)
    newer = request[:6] + struct.pack(">h", 99) + request[8:]
    through.broker.answers.append(struct.pack(">ihi", CORRELATION_ID, 35, 0))
    through.client.socket.sendall(newer)
    through.client.receive()
    assert through.decoder.report() == Decoded({"API_VERSIONS": {"99": 1}}, {}, [])


def test_a_produce_request_that_wants_no_answer_waits_for_none(through: Proxied) -> None:
    for version in (3, 8, 9, 12):
        through.send(produce_request("t", (0, batch(b"a")), acks=0), version)
    through.send(ProduceRequest(transactional_id="mine", acks=0, timeout_ms=1, topic_data=[]), 9)
    assert through.ask(ListGroupsRequest(), LIST_GROUPS, groups()).defects == []


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (groups() + b"\0", "LIST_GROUPS 5: 1 bytes too many"),
        (groups()[:-2], "LIST_GROUPS 5: java.nio.BufferUnderflowException"),
        (groups()[:2], "LIST_GROUPS 5: no correlation id"),
        (groups(error_code=-1), "LIST_GROUPS 5: UNKNOWN_SERVER_ERROR"),
        (b"\0\0\0\1" + groups()[4:], f"LIST_GROUPS 5: correlation id 1, not {CORRELATION_ID}"),
        # a tag of the header twice as long as it must be
        (groups()[:4] + b"\x80\0" + groups()[5:], "LIST_GROUPS 5: Kafka writes it otherwise"),
    ],
)
def test_a_defect_is_reported(through: Proxied, answer: bytes, found: str) -> None:
    defects = through.ask(ListGroupsRequest(), LIST_GROUPS, answer).defects
    assert defects
    assert defects[0].startswith(found)
    assert answer.hex() in defects[0]


def test_a_damaged_batch_is_reported(through: Proxied) -> None:
    damaged = bytearray(batch(b"a"))
    damaged[-1] ^= 1
    defects = through.ask(fetch_request("t"), FETCH, fetched(bytes(damaged))).defects
    assert len(defects) == 1
    assert "CorruptRecordException" in defects[0]


def test_an_answer_to_no_request_is_reported(through: Proxied) -> None:
    through.send(produce_request("t", (0, None), acks=0), 9, groups())
    through.client.receive()
    assert [defect[:23] for defect in through.decoder.report().defects] == ["an answer to no request"]
