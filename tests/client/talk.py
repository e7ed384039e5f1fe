"""The peer of an `OutboundConnection`: reads its requests, and creates answers."""

from __future__ import annotations

import struct
from typing import NamedTuple

from client.connection import OutboundConnection
from client.pending import InFlightLimits, Pending, RequestOutcome
from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.messages import messages_of
from protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.header import RequestHeader
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.schema import identity

PEER = "127.0.0.1:9092"
HELLO = ApiVersionsRequest(client_software_name="odradek", client_software_version="1")
HANDSHAKE_MS = 500
METADATA = MetadataRequest(topics=[])
METADATA_ANSWER = MetadataResponse(brokers=[], topics=[], cluster_id="c")


class Sent(NamedTuple):
    """A request as the peer received it."""

    header: RequestHeader
    request: object

    @property
    def version(self) -> int:
        return self.header.request_api_version


def requests_in(stream: bytes) -> list[Sent]:
    """Returns the requests in whole frames."""
    requests, position = [], 0
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        frame = stream[position + 4 : position + 4 + size]
        assert len(frame) == size, "a frame is cut"
        requests.append(read_request(frame))
        position += 4 + size
    return requests


def read_request(frame: bytes) -> Sent:
    key, version = struct.unpack_from(">hh", frame)
    cls: type[object] = messages_of(ApiKey(key)).request
    header, position = decode(RequestHeader, 2 if version in identity(cls).flexible else 1, frame)
    request, end = decode(cls, version, frame, position)
    assert end == len(frame), "bytes follow the request"
    return Sent(header, request)


def answer(response: object, version: int, correlation_id: int) -> bytes:
    """Returns a framed answer."""
    message = identity(type(response))
    flexible = version in message.flexible and message.key != ApiKey.API_VERSIONS
    body = struct.pack(">i", correlation_id) + (b"\0" if flexible else b"") + encode(response, version)
    return struct.pack(">i", len(body)) + body


def api_versions(*ranges: tuple[ApiKey, int, int], error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, first, last in ranges]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


COMMON = api_versions(
    (ApiKey.PRODUCE, 0, 12), (ApiKey.FETCH, 4, 12), (ApiKey.METADATA, 0, 12), (ApiKey.SASL_AUTHENTICATE, 0, 2)
)


def connecting(limits: InFlightLimits = InFlightLimits(), **others: object) -> OutboundConnection:  # noqa: B008  # a tuple
    return OutboundConnection(PEER, client_id="me", hello=HELLO, limits=limits, **others)  # type: ignore[arg-type]


def sent(client: OutboundConnection) -> list[Sent]:
    return requests_in(b"".join(client.outgoing()))


def ready(limits: InFlightLimits = InFlightLimits(), **others: object) -> OutboundConnection:  # noqa: B008  # a tuple
    """Returns a connection that has negotiated versions at time 0."""
    client = connecting(limits, **others)
    client.connected(0, HANDSHAKE_MS)
    (hello,) = sent(client)
    assert not feed(client, answer(COMMON, hello.version, hello.header.correlation_id))
    return client


def feed(
    client: OutboundConnection, stream: bytes, now_ms: int = 0, piece_bytes: int = 1 << 30
) -> list[RequestOutcome]:
    """Passes bytes to the connection in pieces, as a transport does."""
    outcomes: list[RequestOutcome] = []
    position = 0
    while position < len(stream):
        piece = stream[position : position + piece_bytes]
        target = client.target()
        if target is None:
            read_into = bytearray(piece)
            outcomes += client.receive(memoryview(read_into), now_ms)
            read_into[:] = b"\xee" * len(piece)  # the buffer is used again
        else:
            if not len(target):
                break  # nothing comes after an error
            piece = piece[: len(target)]
            target[: len(piece)] = piece
            outcomes += client.filled(len(piece), now_ms)
        position += len(piece)
    return outcomes


def ask(client: OutboundConnection, now_ms: int = 0, timeout_ms: int = 1000) -> Pending:
    """Returns a Metadata request that is still unanswered."""
    pending, outcomes = client.request(METADATA, MetadataResponse, now_ms=now_ms, timeout_ms=timeout_ms)
    assert not outcomes
    return pending
