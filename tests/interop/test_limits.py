"""Tests limits over real sockets, in a real process: its memory stays bounded, and it keeps running, whatever clients
do."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from broker.request.log_limiter import LINES_OF_ADDRESS
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceResponse
from protocol.records.building import build
from tests.interop.brokers import Odradek
from tests.interop.conformance.peers import Peer
from tests.interop.conformance.producing import request as produce_request
from tests.interop.conformance.records import records
from tests.interop.conftest import Start
from tests.waiting import wait_until
from tests.wire import request_frame

MIB = 1024 * 1024
FETCH_VERSION, PRODUCE_VERSION = 12, 12
LAST_WITH_MESSAGE_SETS = 3
"""The last version of Fetch with message sets."""
WAIT_S = 10
HELLO = request_frame(ApiVersionsRequest(), 0)


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odradek]:
    broker = Odradek(tmp_path_factory.mktemp("limits") / "data")
    broker.start()
    yield broker
    assert broker.is_running
    assert broker.stop() == 0
    broker.forget()


def connect(broker: Odradek, receive_buffer_bytes: int | None = None) -> socket.socket:
    host, port = broker.bootstrap.rsplit(":", 1)
    client = socket.socket()
    if receive_buffer_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    client.settimeout(WAIT_S)
    client.connect((host, int(port)))
    return client


def peer(broker: Odradek) -> Peer:
    return Peer("odradek", broker.bootstrap, broker.data)


def private_bytes(broker: Odradek) -> int:
    """Returns the process's private memory, without pages of files, which the kernel can reclaim at any time."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))) * 1024


def read_frames(client: socket.socket, count: int) -> list[bytes]:
    frames, stream = [], client.makefile("rb")
    for _ in range(count):
        (size,) = struct.unpack(">i", stream.read(4))
        frames.append(stream.read(size))
    return frames


def is_served(broker: Odradek) -> bool:
    with connect(broker) as client:
        client.sendall(HELLO)
        return len(read_frames(client, 1)) == 1


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def fetch_frame(topic: str, max_bytes: int, version: int = FETCH_VERSION) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return request_frame(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics), version)


def test_a_gigabyte_that_nobody_reads_takes_no_memory(odradek: Odradek) -> None:
    writer = peer(odradek)
    topic_id = writer.create("large", max_message_bytes=str(2 * MIB))
    batch = bytes(build(records(1, size=MIB)))
    for _ in range(40):
        writer.quietly(produce_request("large", topic_id, (0, batch)), PRODUCE_VERSION)
    before = private_bytes(odradek)
    with connect(odradek, 4096) as reader:
        requests = fetch_frame("large", 40 * MIB) * 25
        reader.sendall(requests)
        most = max(measured(odradek, 30))
        assert most - before < 16 * MIB
        assert is_served(odradek)
        (frame,) = read_frames(reader, 1)
    assert len(frame) > 35 * MIB


def test_answers_that_nobody_takes_are_not_all_memory(start_odradek: Start) -> None:
    """Forty connections request four megabytes each, and don't read: message sets, which are not in a file."""
    odradek = start_odradek({"odradek.unread.answers.max.bytes": str(16 * MIB)})
    writer = peer(odradek)
    topic_id = writer.create("large", max_message_bytes=str(2 * MIB))
    batch = bytes(build(records(1, size=MIB)))
    for _ in range(4):
        writer.quietly(produce_request("large", topic_id, (0, batch)), PRODUCE_VERSION)
    before = private_bytes(odradek)
    requests = fetch_frame("large", 4 * MIB, LAST_WITH_MESSAGE_SETS)
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(odradek, 4096)).sendall(requests)
            assert is_served(odradek)
        assert "odradek.unread.answers.max.bytes" in lines_with(odradek, "its peer has not read")[0]
        wait_until(lambda: private_bytes(odradek) - before < 80 * MIB)  # 136 without a bound
    assert is_served(odradek)


def measured(broker: Odradek, times: int) -> Iterator[int]:
    for _ in range(times):
        yield private_bytes(broker)
        time.sleep(0.01)  # the time between samples


def test_requests_that_nobody_reads_the_answers_of_are_not_read(odradek: Odradek) -> None:
    """The kernel's buffers fill up, and then the client's sends block."""
    with connect(odradek, 4096) as client:
        client.setblocking(False)
        sent, frames = 0, request_frame(MetadataRequest(topics=None), 1) * 1000
        deadline = time.monotonic() + WAIT_S
        blocked_since = None
        while time.monotonic() < deadline:
            try:
                sent += client.send(frames)
                blocked_since = None
            except BlockingIOError:
                blocked_since = blocked_since or time.monotonic()
                if time.monotonic() - blocked_since > 0.5:
                    break
                time.sleep(0.01)  # a socket with full buffers is tried again
        assert blocked_since is not None
        assert is_served(odradek)


def test_announced_frames_take_no_memory(odradek: Odradek) -> None:
    before = private_bytes(odradek)
    clients = [connect(odradek) for _ in range(40)]
    for client in clients:
        client.sendall(struct.pack(">i", 100 * MIB) + HELLO[4:])
    assert is_served(odradek)
    assert private_bytes(odradek) - before < 60 * MIB
    for client in clients:
        client.close()
    assert is_served(odradek)


def test_half_frames_have_a_bounded_memory_and_time(start_odradek: Start) -> None:
    """A hundred connections each send one megabyte of eight, and stop."""
    options = {
        "socket.request.max.bytes": str(8 * MIB),
        "queued.max.request.bytes": str(64 * MIB),
        "odradek.queued.request.share.per.ip": "1",
        "odradek.request.stall.timeout.ms": "1500",
    }
    odradek = start_odradek(options)
    assert is_served(odradek)
    before = private_bytes(odradek)
    half = struct.pack(">i", 8 * MIB) + bytes(MIB)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(odradek)) for _ in range(100)]
        for client in clients:
            client.setblocking(False)
            with suppress(BlockingIOError):  # what the broker does not read stays with the kernel, or here
                client.send(half)
        most = max(measured(odradek, 50))
        assert most - before < 90 * MIB
        assert is_served(odradek)
        for client in clients:
            client.settimeout(WAIT_S)
            assert is_closed(client)
    assert is_served(odradek)
    assert len(lines_with(odradek, "(odradek.request.stall.timeout.ms)")) == LINES_OF_ADDRESS
    wait_until(lambda: private_bytes(odradek) - before < 16 * MIB)


def test_clients_that_go_in_the_middle_of_anything(odradek: Odradek) -> None:
    for end in range(0, len(HELLO) + 1, 3):
        with connect(odradek) as client:
            client.sendall(HELLO[:end])
    for _ in range(20):
        with connect(odradek) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no farewell
            client.sendall(HELLO * 50)
    assert is_served(odradek)


def test_a_client_whose_machine_is_gone_is_found_out(odradek: Odradek) -> None:
    """TCP's keep-alive detects it; its timer runs on the broker's side."""
    with connect(odradek) as client:
        client.sendall(HELLO)
        assert read_frames(client, 1)
        ours, theirs = (f"{address[1]:04X}" for address in (client.getpeername(), client.getsockname()))
        sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        (timer,) = [line[5] for line in sockets if line[1].endswith(f":{ours}") and line[2].endswith(f":{theirs}")]
    assert timer.startswith("02:")


def test_a_client_that_says_that_it_will_send_no_more_is_let_go(odradek: Odradek) -> None:
    with connect(odradek) as client:
        client.sendall(HELLO)
        assert read_frames(client, 1)
        client.shutdown(socket.SHUT_WR)
        assert is_closed(client)


def test_ten_thousand_requests_in_one_write(odradek: Odradek) -> None:
    count = 10_000
    frames = b"".join(HELLO[:8] + struct.pack(">i", number) + HELLO[12:] for number in range(count))
    with connect(odradek) as client, connect(odradek) as other:
        client.settimeout(60)
        writer = threading.Thread(target=client.sendall, args=(frames,))
        writer.start()
        other.sendall(HELLO)
        assert read_frames(other, 1)
        numbers = [struct.unpack_from(">i", frame)[0] for frame in read_frames(client, count)]
        writer.join()
    assert numbers == list(range(count))


GARBAGE = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c403031111"),
    "noise": bytes(range(255, 0, -1)) * 10,
    "a size of all ones": b"\xff" * 4,
    "an unknown API": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "a torn request": struct.pack(">ihhihi", 14, 3, 1, 1, -1, 500),
}


def test_garbage_closes_its_own_connection_with_one_line(odradek: Odradek) -> None:
    with connect(odradek) as other:
        for garbage in GARBAGE.values():
            with connect(odradek) as client:
                client.sendall(garbage)
                assert is_closed(client)
                other.sendall(HELLO)
                assert read_frames(other, 1)
                logged_peer = '"peer": "{}:{}"'.format(*client.getsockname())
            (line,) = lines_with(odradek, logged_peer)
            assert '"offset": ' in line


def lines_with(broker: Odradek, text: str) -> list[str]:
    """Returns the lines of the log with the text, once there is one."""
    wait_until(lambda: text in broker.log.read_text())
    return [line for line in broker.log.read_text().splitlines() if text in line]


def test_connections_beyond_the_limit_wait(start_odradek: Start) -> None:
    odradek = start_odradek({"max.connections": "2"})
    first, second, third = (connect(odradek) for _ in range(3))
    for client in (first, second):
        client.sendall(HELLO)
        assert read_frames(client, 1)
    third.sendall(HELLO)
    third.settimeout(0.3)
    with pytest.raises(TimeoutError):
        third.recv(1)
    first.close()
    third.settimeout(WAIT_S)
    assert read_frames(third, 1)
    second.close()
    third.close()


class FewFiles(Odradek):
    """A broker that may have 160 files and connections open."""

    def command(self) -> list[str]:
        return ["sh", "-c", 'ulimit -n 160 && exec "$@"', "sh", *super().command()]


def test_more_partitions_and_connections_than_files_may_be_open(tmp_path: Path) -> None:
    """Neither prevents a log from being opened, which would take its directory offline."""
    count = 400
    odradek = FewFiles(tmp_path / "data")
    with ExitStack() as stack:
        stack.callback(odradek.forget)
        odradek.start()
        writer = peer(odradek)
        topic_id = writer.create("many", count)
        batch = bytes(build(records(1, size=100)))
        to_each = produce_request("many", topic_id, *((partition, batch) for partition in range(count)))
        for base_offset in range(2):
            answer = writer.quietly(to_each, PRODUCE_VERSION)
            assert isinstance(answer, ProduceResponse)
            answered = [
                (partition.error_code, partition.base_offset) for partition in answer.responses[0].partition_responses
            ]
            assert answered == [(ErrorCode.NONE, base_offset)] * count
            for _ in range(200):
                stack.enter_context(connect(odradek)).sendall(HELLO)
        assert "connection refused" in lines_with(odradek, "the limit of open files")[0]
        parts = [FetchPartition(partition=number, partition_max_bytes=MIB, fetch_offset=0) for number in range(count)]
        request = FetchRequest(
            min_bytes=0, max_bytes=MIB, topics=[FetchTopic(topic="many", partitions=parts)], max_wait_ms=0
        )
        fetched = writer.quietly(request, FETCH_VERSION)
        assert isinstance(fetched, FetchResponse)
        sizes = [len(part.records or b"") for part in fetched.responses[0].partitions]
        assert sizes == [2 * len(batch)] * count
        assert "Too many open files" not in odradek.log.read_text()
        assert odradek.stop() == 0


def test_connections_beyond_an_address_s_limit_are_closed(start_odradek: Start) -> None:
    odradek = start_odradek({"max.connections.per.ip": "9", "max.connections.per.ip.overrides": "127.0.0.1:2"})
    first, second, third = (connect(odradek) for _ in range(3))
    assert is_closed(third)
    first.close()

    def is_let_in() -> bool:
        with connect(odradek) as client:
            client.sendall(HELLO)
            return not is_closed(client)

    wait_until(is_let_in)
    second.close()


def test_idle_connections_are_closed(start_odradek: Start) -> None:
    odradek = start_odradek({"connections.max.idle.ms": "400"})
    with connect(odradek) as client:
        client.sendall(HELLO)
        assert read_frames(client, 1)
        assert is_closed(client)


def test_a_request_that_is_too_large_is_refused_before_it_is_there(start_odradek: Start) -> None:
    odradek = start_odradek({"socket.request.max.bytes": "1000"})
    with connect(odradek) as client:
        client.sendall(struct.pack(">i", 1001))
        assert is_closed(client)
    assert is_served(odradek)


def test_what_was_written_before_a_flood_is_there_after_it(odradek: Odradek) -> None:
    writer = peer(odradek)
    topic_id = writer.create("kept")
    batch = bytes(build(records(10)))
    for _ in range(5):
        writer.quietly(produce_request("kept", topic_id, (0, batch)), PRODUCE_VERSION)
        with connect(odradek) as client:
            client.sendall(produce_frame_cut_short())
    answer = writer.exchange(fetch_frame("kept", MIB))
    assert answer is not None
    assert answer.count(b"v" * 10) == 50


def produce_frame_cut_short() -> bytes:
    frame = request_frame(produce_request("kept", bytes(16), (0, bytes(build(records(10))))), PRODUCE_VERSION)
    return frame[: len(frame) // 2]
