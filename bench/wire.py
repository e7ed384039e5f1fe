"""Frames on plain sockets, for clients whose cost is measured, and a client for other requests."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from contextlib import closing

from client.address import Address
from client.blocking import BlockingPeer, PlainClock
from client.settings import Settings

METADATA, API_VERSIONS = 3, 18
CLIENT_ID = b"bench"
POLL_S = 0.002
IO_TIMEOUT_S = 10.0
IO_TIMEOUT_MS = 10_000


def request(api_key: int, version: int, body: bytes = b"") -> bytes:
    """Returns a frame with request header v1."""
    header = struct.pack(f">hhih{len(CLIENT_ID)}s", api_key, version, 1, len(CLIENT_ID), CLIENT_ID)
    return struct.pack(">i", len(header) + len(body)) + header + body


API_VERSIONS_REQUEST = request(API_VERSIONS, 0)
# Version 1 with an empty array: brokers, and no topics.
METADATA_REQUEST = request(METADATA, 1, struct.pack(">i", 0))


def connect(bootstrap: str, timeout_s: float = IO_TIMEOUT_S, source: str = "") -> socket.socket:
    """Opens a connection, from the address `source` if that is not empty."""
    host, _, port = bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), timeout_s, (source, 0) if source else None)


def receive(connection: socket.socket, size: int) -> bytes:
    """Returns exactly `size` bytes. Raises ConnectionError if the peer closes the connection before."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the connection was closed during an answer")
        parts += part
    return bytes(parts)


def ask(connection: socket.socket, frame: bytes) -> bytes:
    """Returns the body of the answer to a request, after its correlation id."""
    connection.sendall(frame)
    (size,) = struct.unpack(">i", receive(connection, 4))
    return receive(connection, size)[4:]


def api_keys(bootstrap: str) -> frozenset[int]:
    """Returns the APIs that a broker advertises. Raises PeerError, ProtocolError."""
    with closing(peer(bootstrap)) as broker:
        return frozenset(broker.versions(timeout_ms=IO_TIMEOUT_MS).ranges)


def peer(address: str) -> BlockingPeer:
    """Returns a broker for requests whose cost is not measured."""
    return BlockingPeer(Address.parse(address), Settings(client_id=CLIENT_ID.decode()), PlainClock())


def names_a_broker(body: bytes) -> bool:
    """True if the body of a Metadata response v1 has at least one broker. Before that, no other request can be sent."""
    return int(struct.unpack_from(">i", body)[0]) > 0


def wait_for_metadata(bootstrap: str, timeout_s: float, goes_on: Callable[[], bool]) -> int:
    """Requests Metadata until a broker answers, and returns `time.monotonic_ns()` of that answer. Raises TimeoutError,
    also once `goes_on` returns False."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and goes_on():
        try:
            with connect(bootstrap) as connection:
                if names_a_broker(ask(connection, METADATA_REQUEST)):
                    return time.monotonic_ns()
        except OSError:
            pass
        time.sleep(POLL_S)
    raise TimeoutError(f"{bootstrap} did not answer Metadata")
