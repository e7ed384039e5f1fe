"""A client of one connection that sends any frame, and any request in any version, including requests that real clients
never send."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import TypeVar

from client.codec import ClientCodec
from protocol.api_key import ApiKey
from protocol.codec import decode
from protocol.schema import identity

A = TypeVar("A")

CLIENT_ID = "me"
CORRELATION_ID = 7


def request_frame(request: object, version: int) -> bytes:
    """Returns a request as a client frames it."""
    buffers, _ = ClientCodec(type(request), None, version, CLIENT_ID).frame(request, CORRELATION_ID)
    return b"".join(buffers)


def decode_response(frame: bytes, response: type[A], version: int) -> A:
    """Returns the response in a frame without its size. Nothing may follow the response."""
    message = identity(response)
    start = 5 if version in message.flexible and message.key != ApiKey.API_VERSIONS else 4
    answer, end = decode(response, version, memoryview(frame), start)
    assert end == len(frame), f"{response.__name__} v{version} has {len(frame) - end} bytes too many"
    return answer


class WireClient:
    """A client that sends a request only after the last one is answered, and doesn't negotiate versions."""

    def __init__(
        self, bootstrap: str, timeout_s: float = 60, source: str = "", context: ssl.SSLContext | None = None
    ) -> None:
        """`source` is the local address of the connection; with a `context` it uses TLS."""
        host, _, port = bootstrap.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout_s, (source, 0) if source else None)
        self.socket = plain if context is None else context.wrap_socket(plain, server_hostname=host)

    def ask(self, request: object, response: type[A], version: int) -> A:
        """Returns the answer. Raises ConnectionError if the broker closes the connection instead."""
        return decode_response(self.exchange(request_frame(request, version)), response, version)

    def exchange(self, frame: bytes) -> bytes:
        """Sends a frame, and returns the frame of the answer without its size."""
        self.socket.sendall(frame)
        return self.receive()

    def receive(self) -> bytes:
        """Returns the next frame, without its size."""
        return self._read(*struct.unpack(">i", self._read(4)))

    def close(self) -> None:
        self.socket.close()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise ConnectionResetError("the broker closed the connection")
            data += piece
        return bytes(data)
