"""A client of one connection that sends any request in any version, for what real clients would never ask."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import TypeVar

from protocol.codec import decode, encode
from protocol.schema import identity

A = TypeVar("A")


class WireClient:
    """One request at a time, each answered before the next."""

    def __init__(
        self, bootstrap: str, timeout_s: float = 10, source: str = "", context: ssl.SSLContext | None = None
    ) -> None:
        """`source` is the address that it comes from; with a `context` it speaks TLS."""
        host, _, port = bootstrap.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout_s, (source, 0) if source else None)
        self._socket = plain if context is None else context.wrap_socket(plain, server_hostname=host)
        self._correlation_id = 0

    def ask(self, request: object, response: type[A], version: int) -> A:
        """The answer; EOFError if the broker closed the connection instead."""
        message = identity(type(request))
        flexible = b"\0" if version in message.flexible else b""
        self._correlation_id += 1
        header = struct.pack(">hhih2s", message.key, version, self._correlation_id, 2, b"me")
        frame = header + flexible + encode(request, version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._receive(4))
        answer, _ = decode(response, version, self._receive(size), 4 + len(flexible))
        return answer

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            if not piece:
                raise EOFError
            received += piece
        return received

    def close(self) -> None:
        self._socket.close()
