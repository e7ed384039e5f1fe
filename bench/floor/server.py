"""The cost of the kernel alone: receives and writes the same bytes, or sends them from a mapped file, without a
protocol.

A connection begins with one line, `receive NAME CHUNK` or `send NAME CHUNK`. With `receive`, each chunk is written and
gets a short answer. With `send`, each short request gets a chunk of the file, which starts again after its end.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import threading
from pathlib import Path

# About the length of a Produce response, and of a Fetch request of one partition in a session.
SHORT = bytes(64)


def receive(connection: socket.socket, path: Path, chunk_bytes: int) -> None:
    """Writes each chunk at the end of the file, and answers."""
    buffer = memoryview(bytearray(chunk_bytes))
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    position = 0
    while connection.recv_into(buffer, chunk_bytes, socket.MSG_WAITALL) == chunk_bytes:
        position += os.pwrite(file, buffer, position)
        connection.sendall(SHORT)
    os.close(file)


def send(connection: socket.socket, path: Path, chunk_bytes: int) -> None:
    """Sends the next chunk for each request."""
    with path.open("rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        position = 0
        while len(connection.recv(len(SHORT), socket.MSG_WAITALL)) == len(SHORT):
            left = chunk_bytes
            while left:
                part = view[position : position + left]
                connection.sendall(part)
                left -= len(part)
                position = (position + len(part)) % len(view)


FLOWS = {"receive": receive, "send": send}


def serve(connection: socket.socket, data: Path) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opening = bytearray()
        while not opening.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                return
            opening += byte
        flow, name, chunk_bytes = opening.decode().split()
        FLOWS[flow](connection, data / name, int(chunk_bytes))


def main(address: str, data: str) -> None:
    Path(data).mkdir(parents=True)
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port)), backlog=128) as listener:
        print(f"ready {address}", flush=True)
        while True:
            connection, _peer = listener.accept()
            threading.Thread(target=serve, args=(connection, Path(data)), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
