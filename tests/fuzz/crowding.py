"""Measures how long one client's large request makes another client wait: `python -m tests.fuzz.crowding`.

Each array of each API's newest request version has as many entries as are asked for. The other client asks for
ApiVersions over and over; the longest wait for an answer while the large request is at work is its row in the table.
"""

from __future__ import annotations

import argparse
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from broker.config.authorization import STANDARD_AUTHORIZER
from broker.handlers import APIS
from protocol.api_key import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.broker.extremes import TOPIC
from tests.broker.inprocess import decode_response, request_frame
from tests.broker.many import Many, requests_of_many
from tests.interop.brokers import Odradek

RIGHTS: Final = {"with": "User:ANONYMOUS", "without": "User:nobody"}
"""The superusers of a broker whose client has all rights, and of a broker whose client has none."""

ANSWER_TIMEOUT_S: Final = 120
PAUSE_S: Final = 0.002
"""The pause of the other client between two requests."""


class Wait(NamedTuple):
    """The longest wait of another client during one request."""

    longest_s: float
    answered_s: float
    request: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.longest_s:8.3f} {self.answered_s:8.3f}  {self.request} -> {self.outcome}"


class Client:
    """A connection that waits for each answer."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), ANSWER_TIMEOUT_S)

    def ask(self, frame: bytes) -> bytes:
        """Returns the answer. Raises OSError if the broker closes the connection, or doesn't answer in time."""
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return bytes(data)

    def close(self) -> None:
        self._socket.close()


class Other:
    """The other client, in a thread of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._client = Client(bootstrap)
        self._over = threading.Event()
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        frame = request_frame(ApiVersionsRequest(), 0)
        while not self._over.wait(PAUSE_S):
            began = time.monotonic()
            self._client.ask(frame)
            self.longest_s = max(self.longest_s, time.monotonic() - began)

    def stop(self) -> float:
        """Returns the longest wait, once the last answer has arrived."""
        self._over.set()
        self._thread.join()
        self._client.close()
        return self.longest_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.crowding", description=__doc__)
    parser.add_argument("--entries", default="20000", help="entries of each array: 20000,100000,200000")
    parser.add_argument("--api", default="", help="only these: FETCH,METADATA")
    parser.add_argument("--rights", choices=[*RIGHTS, "both"], default="both", help="of the client that asks for much")
    options = parser.parse_args()
    only = {name for name in options.api.split(",") if name}
    counts = [int(count) for count in options.entries.split(",")]
    waits: list[Wait] = []
    for rights in RIGHTS if options.rights == "both" else [options.rights]:
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder, "data"), rights) as (broker, topic_id):
            for many in requests(only):
                waits += [measured(broker.bootstrap, many, count, topic_id, rights) for count in counts]
    print(" longest answered  request")
    for wait in sorted(waits, reverse=True):
        print(wait)


def requests(only: set[str]) -> Iterator[Many]:
    """Yields the requests of the newest version of each API; of the named ones if any are named."""
    for api in APIS:
        if not only or api.key.name in only:
            yield from requests_of_many(api.request, api.versions.last)


@contextmanager
def serving(data: Path, rights: str) -> Iterator[tuple[Odradek, bytes]]:
    """Starts a broker that has a topic; yields it with the topic's id."""
    broker = Odradek(data, {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": RIGHTS["with"]})
    try:
        broker.start()
        topic_id = created(broker.bootstrap)
        broker.properties["super.users"] = RIGHTS[rights]
        broker.restart()
        yield broker, topic_id
    finally:
        broker.forget()


def created(bootstrap: str) -> bytes:
    """Creates the topic that the requests name; returns its id."""
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    client = Client(bootstrap)
    frame = client.ask(request_frame(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7))
    client.close()
    return decode_response(frame, ApiKey.CREATE_TOPICS, 7, CreateTopicsResponse).topics[0].topic_id


def measured(bootstrap: str, many: Many, count: int, topic_id: bytes, rights: str) -> Wait:
    """Returns the longest wait of another client while this request is at work."""
    frame = request_frame(many.build(count, topic_id), many.version)
    client, other = Client(bootstrap), Other(bootstrap)
    began = time.monotonic()
    try:
        outcome = f"{len(client.ask(frame))} bytes"
    except OSError as error:
        outcome = str(error)
    answered_s = time.monotonic() - began
    client.close()
    return Wait(other.stop(), answered_s, f"{many} {count} entries, {rights} rights, {len(frame)} bytes", outcome)


if __name__ == "__main__":
    main()
