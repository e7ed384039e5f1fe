"""Exits with 0 when the broker answers an ApiVersions request: `healthy.py [HOST:PORT]`."""

from __future__ import annotations

import socket
import struct
import sys

TIMEOUT_S = 2.0
API_VERSIONS, VERSION, CORRELATION_ID = 18, 0, 7


def is_healthy(host: str, port: int) -> bool:
    """Whether a broker there answers with its APIs and no error."""
    request = struct.pack(">hhih", API_VERSIONS, VERSION, CORRELATION_ID, -1)
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as connection, connection.makefile("rb") as answer:
            connection.sendall(struct.pack(">i", len(request)) + request)
            head = answer.read(10)
    except OSError:
        return False
    return len(head) == 10 and struct.unpack(">iih", head)[1:] == (CORRELATION_ID, 0)


if __name__ == "__main__":
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092").rpartition(":")
    sys.exit(0 if is_healthy(host, int(port)) else 1)
