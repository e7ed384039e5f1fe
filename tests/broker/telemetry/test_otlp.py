"""Tests a collector that gets pushes by OTLP: its answers, and collectors that are as slow as possible."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.telemetry.otlp import OtlpCollector
from broker.telemetry.posting import PostTarget, endpoint_of
from broker.telemetry.push import Push
from broker.telemetry.queue import NotTaken, PushQueue
from coordinator.telemetry.subscriptions import ClientAttributes
from tests.broker.security.certificates import Authority
from tests.broker.telemetry.pushes import data, gauge

ATTRIBUTES = ClientAttributes("one", None, "unknown", "unknown", "127.0.0.1", "1")
PUSH = Push(ATTRIBUTES, "User:ANONYMOUS", 1000, data(gauge("org.a", 2)))
LONG_S = 60
SOON_S = 0.05
HEAD_END = b"\r\n\r\n"

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def collector(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Yields the URL of a collector that answers each connection in this way."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the broker has gone
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/v1/metrics?tenant=a b"


async def deliver(url: str, timeout_s: float = LONG_S) -> None:
    one = OtlpCollector(url, 1, timeout_s=timeout_s)
    try:
        await one.deliver(PUSH)
    finally:
        one.close()


def saying(text: str) -> Answer:
    """Returns a handler that checks a push, and answers with these lines."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *fields = (await reader.readuntil(HEAD_END)).decode().split("\r\n")
        named = dict(field.split(": ", 1) for field in fields if field)
        assert first == "POST /v1/metrics?tenant=a%20b HTTP/1.1"
        assert (named["Content-Type"], named["Connection"]) == ("application/x-protobuf", "close")
        assert named["Host"].startswith("localhost:")
        assert b"client_instance_id" in await reader.readexactly(int(named["Content-Length"]))
        writer.write(text.encode())
        await writer.drain()

    return answer


@pytest.mark.parametrize("text", [
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.0 202 \n\n",
    "HTTP/1.1 204\r\n\r\n",
    "HTTP/1.1 102 Processing\r\nX: y\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
])  # fmt: skip
async def test_a_push_that_is_taken(text: str) -> None:
    async with collector(saying(text)) as url:
        await deliver(url)


@pytest.mark.parametrize(("text", "is_final", "reason"), [
    ("HTTP/1.1 400 Bad Request\r\n\r\n", True, "the collector answered with status 400"),
    ("HTTP/1.1 302 Found\r\nLocation: /v1/metrics\r\n\r\n", True, "the collector answered with status 302"),
    ("HTTP/1.1 429 Too Many Requests\r\n\r\n", False, "the collector answered with status 429"),
    ("HTTP/1.1 503 Service Unavailable\r\n\r\n", False, "the collector answered with status 503"),
    ("220 mail.example.org ESMTP\r\n", False, "the answer is not HTTP: b'220 mail.example.org"),
    ("HTTP/1.1 999 \r\n\r\n", False, "the answer is not HTTP"),
    ("", False, "it ended without an answer"),
    ("HTTP/1.1 102 \r\n\r\n", False, "it ended without an answer"),
    ("HTTP/1.1 200" + "0" * 100_000, False, "reach the collector"),
])  # fmt: skip
async def test_one_that_is_not(text: str, is_final: bool, reason: str) -> None:
    async with collector(saying(text)) as url:
        with pytest.raises(NotTaken, match=reason) as refused:
            await deliver(url)
        assert refused.value.is_final is is_final


async def test_a_collector_that_is_not_there_is_asked_again() -> None:
    async with collector(saying("")) as url:
        pass
    with pytest.raises(NotTaken, match="reach the collector") as unreached:
        await deliver(url)
    assert not unreached.value.is_final


def secured(keystore: Path) -> ssl.SSLContext:
    """Returns the TLS context of a collector with this key and certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keystore)
    return context


async def test_a_secured_collector_is_one_that_the_system_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, other = Authority(tmp_path), Authority(tmp_path, "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.certificate))
    taking = saying("HTTP/1.1 200 OK\r\n\r\n")
    async with collector(taking, secured(trusted.issue("server"))) as url:
        await deliver(url)
    async with collector(taking, secured(other.issue("mallory"))) as url:
        with pytest.raises(NotTaken, match=r"(?i)certificate"):
            await deliver(url)


async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads a push, and answers with a byte now and then."""
    await reader.readuntil(HEAD_END)
    while not writer.is_closing():
        writer.write(b"H")
        await asyncio.sleep(SOON_S / 50)


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads a push, and sends nothing."""
    while await reader.read(1 << 16):
        pass


@pytest.mark.parametrize("answer", [trickle, silence])
async def test_a_collector_has_so_much_time_however_often_it_sends_a_byte(answer: Answer) -> None:
    async with collector(answer) as url:
        async with asyncio.timeout(LONG_S):
            with pytest.raises(NotTaken, match=f"no answer within {SOON_S} s") as late:
                await deliver(url, SOON_S)
        assert not late.value.is_final


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 20"])
async def test_a_post_under_way_ends_with_its_queue(first: bytes) -> None:
    """A broker that stops doesn't wait for a collector."""
    has_come, has_gone = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(HEAD_END)
        writer.write(first)
        has_come.set()
        await silence(reader, writer)
        has_gone.set()

    async with collector(answer) as url:
        one = OtlpCollector(url, 1, timeout_s=100 * LONG_S)
        queue = PushQueue(url, one.deliver, SystemClock())
        queue.take(PUSH)
        async with asyncio.timeout(LONG_S):
            await has_come.wait()
            queue.close()
            await has_gone.wait()
        one.close()


@pytest.mark.parametrize(("url", "endpoint"), [
    ("http://otel:4318/v1/metrics", PostTarget("otel", 4318, False, "otel:4318", "/v1/metrics")),
    ("https://otel.example.org", PostTarget("otel.example.org", 443, True, "otel.example.org", "/")),
    ("http://[::1]:4318/a/ü?b=c&d=%20", PostTarget("::1", 4318, False, "[::1]:4318", "/a/%C3%BC?b=c&d=%20")),
])  # fmt: skip
def test_the_parts_of_a_url(url: str, endpoint: PostTarget) -> None:
    assert endpoint_of(url) == endpoint
