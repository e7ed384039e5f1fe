"""The client of the floor: sends the bytes of a load, or receives them, as fast as possible.

    python -m bench.floor.pump HOST:PORT receive|send NAME CHUNK_BYTES SIZE_BYTES CONNECTIONS

Prints a ToolResult as JSON, whose records are chunks.
"""

from __future__ import annotations

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from bench import wire
from bench.figures import ToolResult, percentiles_ms

SHORT_BYTES = 64
# Requests in flight of a producer on one connection, by default.
IN_FLIGHT = 5


def push(connection: socket.socket, chunk_bytes: int, chunks: int) -> list[int]:
    """Sends chunks, several before the first answer; returns the time of each from sending to its answer, in
    nanoseconds.
    """
    chunk = b"x" * chunk_bytes
    sent_ns: list[int] = []
    taken_ns: list[int] = []
    while len(taken_ns) < chunks:
        while len(sent_ns) < min(chunks, len(taken_ns) + IN_FLIGHT):
            sent_ns.append(time.monotonic_ns())
            connection.sendall(chunk)
        wire.receive(connection, SHORT_BYTES)
        taken_ns.append(time.monotonic_ns() - sent_ns[len(taken_ns)])
    return taken_ns


def pull(connection: socket.socket, chunk_bytes: int, chunks: int) -> list[int]:
    """Requests chunks one by one; returns the time of each from the request to its last byte, in nanoseconds."""
    buffer = bytearray(chunk_bytes)
    taken_ns: list[int] = []
    for _ in range(chunks):
        asked_ns = time.monotonic_ns()
        connection.sendall(bytes(SHORT_BYTES))
        if connection.recv_into(buffer, chunk_bytes, socket.MSG_WAITALL) != chunk_bytes:
            raise ConnectionError("the floor closed the connection")
        taken_ns.append(time.monotonic_ns() - asked_ns)
    return taken_ns


FLOWS = {"receive": push, "send": pull}


def main(bootstrap: str, flow: str, name: str, *sizes: str) -> None:
    chunk_bytes, size_bytes, connections = map(int, sizes)
    chunks = max(1, size_bytes // chunk_bytes)

    def run(_: int) -> list[int]:
        with wire.connect(bootstrap) as connection:
            connection.settimeout(None)  # with a timeout, MSG_WAITALL would not wait
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(f"{flow} {name} {chunk_bytes}\n".encode())
            return FLOWS[flow](connection, chunk_bytes, chunks)

    started = time.monotonic()
    with ThreadPoolExecutor(connections) as pool:
        taken_ns = [time_ns for times in pool.map(run, range(connections)) for time_ns in times]
    seconds = time.monotonic() - started
    print(ToolResult(len(taken_ns), len(taken_ns) * chunk_bytes, seconds, percentiles_ms(taken_ns)).as_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
