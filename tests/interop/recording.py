"""Records the requests of real clients: a proxy between clients and a broker that stores each request frame.

`pytest tests/interop --record-frames DIR` puts one in front of every Odradek that a test starts. The broker advertises
the proxy's address, so that clients keep using it. tests/fuzz/corpus.py makes a corpus of the files.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

LONGEST_BYTES = 2000
"""Maximum size of stored frames; longer frames are mostly records."""

RECEIVED_BYTES = 1 << 16


class Proxy:
    """Listens for the clients of one broker, and stores their frames in a file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.broker = ("127.0.0.1", 0)
        self._file = folder / f"{self._listener.getsockname()[1]}.frames"
        self._seen: set[bytes] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(self.broker)
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self._requests, args=(client, broker), daemon=True).start()
                threading.Thread(target=pump, args=(broker, client), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket) -> None:
        buffer = bytearray()
        with contextlib.suppress(OSError):
            while data := client.recv(RECEIVED_BYTES):
                broker.sendall(data)
                buffer += data
                self._cut(buffer)
        close(client, broker)

    def _cut(self, buffer: bytearray) -> None:
        while len(buffer) >= 4:
            size = int.from_bytes(buffer[:4], "big", signed=True)
            if not 0 <= size <= len(buffer) - 4:
                return
            self._keep(bytes(buffer[4 : 4 + size]))
            del buffer[: 4 + size]

    def _keep(self, frame: bytes) -> None:
        shape = frame[:4] + frame[8:]  # not its correlation id
        with self._lock:
            if len(frame) > LONGEST_BYTES or shape in self._seen:
                return
            self._seen.add(shape)
            with self._file.open("a") as file:
                file.write(f"{frame.hex()}\n")


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(RECEIVED_BYTES):
            target.sendall(data)
    close(source, target)


def close(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
