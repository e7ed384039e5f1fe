"""Tests the end of a connection at any time: nothing acts on it afterwards, and other connections aren't affected."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from broker.request.context import ClientConnection
from broker.request.pending import Answer
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.inprocess import Client, InProcess, request_frame
from tests.broker.test_listener import HELLO, all_frames, produce_frame, waiting_fetch
from tests.log_lines import Line
from tests.waiting import until

HELLO_FRAME = request_frame(HELLO, 3)
UNKNOWN_API = struct.pack(">ihhih", 10, 999, 0, 1, -1)
IMPOSSIBLE_SIZE = struct.pack(">i", -1)


@pytest.fixture
def troubles() -> Iterator[list[dict[str, object]]]:
    """Yields the errors that reached the event loop: tracebacks of callbacks."""
    caught: list[dict[str, object]] = []
    yield caught
    assert not caught


def watch(troubles: list[dict[str, object]]) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: troubles.append(context))


@pytest.mark.parametrize("waiting", ["fetch", "producer id"])
async def test_a_bad_request_behind_one_that_waits_takes_those_after_it_along(
    waiting: str, tmp_path: Path, lines: list[Line], troubles: list[dict[str, object]]
) -> None:
    """The queue is emptied while a loop goes through it."""
    watch(troubles)
    producer_id = request_frame(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 0)
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client = served.client()
        first = waiting_fetch("t", 20) if waiting == "fetch" else producer_id
        client.send(first + UNKNOWN_API + HELLO_FRAME * 3)
        assert len(await all_frames(client, 1)) == 1
        await asyncio.sleep(0)
        assert client.wire.closing
        assert [line.event for line in lines] == ["connection closed"]


async def test_a_connection_that_closes_while_it_goes_on_with_its_queue(
    tmp_path: Path, troubles: list[dict[str, object]]
) -> None:
    watch(troubles)
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client = served.client()
        client.send(waiting_fetch("t", 60_000) + HELLO_FRAME * 5)
        general, answered = client.connection.listener.answer, 0

        def answer(connection: ClientConnection, frame: memoryview) -> Answer:
            nonlocal answered
            answered += 1
            if answered == 2:
                client.connection.close()
            return general(connection, frame)

        client.connection.listener.answer = answer
        served.client().send(produce_frame("t"))  # the first that is answered
        await until(lambda: answered == 2)
        await asyncio.sleep(0.01)
        assert answered == 2


@pytest.mark.parametrize("impossible", [IMPOSSIBLE_SIZE, IMPOSSIBLE_SIZE[:2]], ids=["whole", "cut in two"])
async def test_a_size_that_cannot_be_behind_a_request_that_waits_is_told_once_it_is_answered(
    impossible: bytes, tmp_path: Path, lines: list[Line]
) -> None:
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client = served.client()
        client.send(waiting_fetch("t", 60_000))
        client.send(impossible)
        if impossible != IMPOSSIBLE_SIZE:
            client.send(IMPOSSIBLE_SIZE[2:])
        assert not client.wire.is_closing()
        served.client().send(produce_frame("t"))
        assert len(await all_frames(client, 1)) == 1
        assert client.wire.closing
        assert len(lines) == 1


@pytest.mark.parametrize("how", ["lost", "closed", "bad"])
async def test_nothing_is_kept_of_a_connection_that_has_ended(
    how: str, tmp_path: Path, lines: list[Line], troubles: list[dict[str, object]]
) -> None:
    watch(troubles)
    async with InProcess(tmp_path) as served:
        await served.create_topic("t")
        client = served.client()
        client.send(waiting_fetch("t", 60_000) + HELLO_FRAME * 3 + HELLO_FRAME[:9])
        end(client, how)
        (partition,) = [one for one in served.server.broker.replicas if one.name.topic == "t"]
        assert not partition.waiters
        assert not client.connection.kept_bytes
        sent = len(client.wire.sent)
        served.client().send(produce_frame("t"))
        client.connection.resume_writing()
        client.connection.admitted()
        await asyncio.sleep(0.01)
        assert len(client.wire.sent) == sent


def end(client: Client, how: str) -> None:
    if how == "lost":
        client.connection.connection_lost(None)
    elif how == "closed":
        client.connection.close()
    else:
        client.connection.fail(ValueError("bad"))


async def test_bytes_that_come_after_the_end_are_nobody_s(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        client.connection.close()
        client.send(HELLO_FRAME + HELLO_FRAME[:7])
        assert not client.wire.sent
        assert not client.connection.kept_bytes


async def test_one_who_wants_to_know_and_fails_keeps_it_from_no_other(tmp_path: Path, lines: list[Line]) -> None:
    async with InProcess(tmp_path) as served:
        client = served.client()
        closed: list[ClientConnection] = []
        client.connection.on_close += [lambda connection: closed[7].on_close.clear(), closed.append]
        client.connection.connection_lost(None)
        assert closed == [client.connection]
        assert isinstance(lines[0].fields["exc_info"], IndexError)


def test_over_sockets_an_end_at_every_byte_leaves_no_trace_back(tmp_path: Path) -> None:
    """A waiting fetch, an invalid request and valid requests after it, cut at any byte; with and without a clean
    close."""
    caught: list[dict[str, object]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: caught.append(context))
        async with InProcess(tmp_path) as served:
            await served.create_topic("t")
            port = served.server.advertised[0].port
            bytes_sent = waiting_fetch("t", 1) + UNKNOWN_API + request_frame(ApiVersionsRequest(), 0) * 3
            await asyncio.gather(*(dropped(port, bytes_sent[:end], end % 2) for end in range(len(bytes_sent) + 1)))
            await until(lambda: not any(listener.connections for listener in served.server.listeners))

    async def dropped(port: int, bytes_sent: bytes, linger: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(bytes_sent)
        await asyncio.sleep(0.005)
        if linger:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    assert not caught
