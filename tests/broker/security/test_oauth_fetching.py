"""Tests the fetch of an issuer's keys over HTTP: its timeout holds, whatever the issuer does."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.security.oauth.fetching import WITHIN_MS, fetched
from broker.security.oauth.keys import MAX_KEYS_BYTES
from tests.broker.security.certificates import Authority, client_context
from tests.broker.security.issuer import Issuer, ec_key, jwk, jwks, serving

KEYS = jwks(jwk(ec_key(), "one"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
LONG_S = 60


async def fetch(url: str, tls: ssl.SSLContext | None = None, within_ms: int = WITHIN_MS) -> bytes:
    async with asyncio.timeout(LONG_S):
        return await asyncio.to_thread(fetched, url, tls, SystemClock(), within_ms)


async def test_keys_come_over_http() -> None:
    with serving(Issuer(jwk(ec_key(), "one"))) as issuer:
        assert await fetch(issuer.url) == KEYS
        issuer.fails = True
        with pytest.raises(OSError, match="503"):
            await fetch(issuer.url)
        issuer.fails, issuer.keys = False, ({"k": "x" * MAX_KEYS_BYTES},)
        with pytest.raises(OSError, match="more than"):
            await fetch(issuer.url)
    with pytest.raises(OSError, match="refused"):
        await fetch(issuer.url)


@pytest.fixture
def secured(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Returns the TLS contexts of an issuer and of a client that trusts it."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server"))
    return context, client_context(authority)


async def test_and_over_tls(secured: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(KEYS), KEYS))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=secured[0])
    async with server:
        assert await fetch(f"https://localhost:{server.sockets[0].getsockname()[1]}/keys", secured[1]) == KEYS


@pytest.mark.parametrize("first", [b"", HEAD], ids=["head", "body"])
async def test_an_issuer_has_so_much_time_however_often_it_sends_a_byte(first: bytes) -> None:
    """Otherwise the stop of the process would wait for its thread as long as the issuer sends bytes."""

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        while not writer.is_closing():
            writer.write(b"H")
            await asyncio.sleep(0.001)

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
        with pytest.raises(OSError, match=r"takes too long|timed out"):
            await fetch(url, within_ms=50)
