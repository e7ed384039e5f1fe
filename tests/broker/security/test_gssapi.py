"""Tests a broker whose clients authenticate by tickets, with a security context without Kerberos."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from broker import security
from broker.clock import Clock
from broker.config.kerberos import KERBEROS_MODULE, TicketOptions
from broker.request.context import ANONYMOUS
from protocol.config import ConfigError
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.sasl.exchange import ServerExchange
from protocol.sasl.gssapi import EstablishedContext, GssapiServer
from tests.broker.inprocess import LONG_S, Client, InProcess, request_frame
from tests.broker.security.sasl import authenticate, closing, handshake, raw, stranger
from tests.protocol.sasl.gss_context import SaidContext, simple

OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
        f'{KERBEROS_MODULE} required useKeyTab=true storeKey=true keyTab="/keytab" principal="kafka/host@REALM";'
    ),
    "connection.failed.authentication.delay.ms": "0",
}
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
ALL_TOPICS = MetadataRequest(topics=None)
OFFER = CHOICE = b"w\x01\x00\x00\x00"
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
TEN_MINUTES_MS = 600_000


def library(begin: Callable[[TicketOptions, Clock], ServerExchange]) -> SimpleNamespace:
    """Returns a replacement for the module that calls the Kerberos library."""
    return SimpleNamespace(acceptor=lambda options, clock: lambda: begin(options, clock))


def exchange(options: TicketOptions, clock: Clock) -> ServerExchange:
    ends_ms = clock.now_ms() + TEN_MINUTES_MS if options.session_ends_with_ticket else None
    return GssapiServer(SaidContext(ends_ms), simple)


@pytest.fixture(autouse=True)
def tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "kerberos_tickets", library(exchange), raising=False)


def served(directory: Path, **options: str) -> InProcess:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return InProcess(directory, {**OPTIONS, **given})


async def log_in(client: Client, token: bytes = b"alice@REALM") -> SaslAuthenticateResponse:
    await handshake(client, "GSSAPI")
    offer = await authenticate(client, token)
    if offer.auth_bytes == b"proof":
        offer = await authenticate(client, b"")
    assert (offer.error_code, offer.auth_bytes, offer.session_lifetime_ms) == (0, OFFER, 0)
    return await authenticate(client, CHOICE)


@pytest.mark.parametrize("token", [b"alice@REALM", b"mutual alice@REALM"])
async def test_who_has_a_ticket_is_whom_the_rules_name(tmp_path: Path, token: bytes) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        response = await log_in(client, token)
        assert (response.error_code, response.auth_bytes, response.session_lifetime_ms) == (0, b"", 0)
        assert str(client.connection.principal) == "User:alice"
        assert (await client.ask(ALL_TOPICS, 12, MetadataResponse)).brokers


@pytest.mark.parametrize(("limit_ms", "least_ms", "most_ms"), [
    ("60000", 59_000, 60_000),
    ("3600000", TEN_MINUTES_MS - 1_000, TEN_MINUTES_MS),
])  # fmt: skip
async def test_a_session_that_ends_does_so_with_its_ticket_at_the_latest(
    tmp_path: Path, limit_ms: str, least_ms: int, most_ms: int
) -> None:
    async with served(tmp_path, connections_max_reauth_ms=limit_ms) as broker:
        client = stranger(broker)
        assert least_ms <= (await log_in(client)).session_lifetime_ms <= most_ms
        assert least_ms <= (await log_in(client)).session_lifetime_ms <= most_ms
        refused = await authenticate(client, b"")
        assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("messages", [(b"no ticket",), (b"alice@REALM", b"unwrapped"), (b"nobody@REALM", CHOICE)])
async def test_who_is_refused_is_told_as_by_kafka_and_nothing_more(tmp_path: Path, messages: tuple[bytes, ...]) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await handshake(client, "GSSAPI")
        for message in messages:
            response = await authenticate(client, message)
        assert (response.error_code, response.error_message, response.auth_bytes) == (
            FAILED,
            "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI",
            b"",
        )
        await closing(client)
        assert client.connection.principal == ANONYMOUS


async def test_who_is_to_come_again_is_disconnected_without_an_answer(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await handshake(client, "GSSAPI")
        client.send(request_frame(SaslAuthenticateRequest(auth_bytes=b"later"), 2))
        await closing(client)
        assert not client.wire.sent


async def frame(client: Client, message: bytes) -> bytes:
    """Sends a message without a header; returns the answer."""
    client.send(raw(message))
    (answer,) = await client.frames(1)
    return answer


@pytest.mark.parametrize("has_handshake", [True, False], ids=["0.10", "0.9"])
async def test_old_clients_send_tokens_without_a_header(tmp_path: Path, has_handshake: bool) -> None:
    """Clients of 0.9 send no request before. The last message gets no answer, because javax.security.sasl has none."""
    async with served(tmp_path) as broker:
        client = stranger(broker)
        if has_handshake:
            await handshake(client, "GSSAPI", version=0)
        assert await frame(client, b"\x60mutual alice@REALM") == b"proof"
        assert await frame(client, b"") == OFFER
        client.send(raw(CHOICE) + request_frame(ALL_TOPICS, 1))
        (answer,) = await client.frames(1)
        assert answer[:4] == request_frame(ALL_TOPICS, 1)[8:12]  # the correlation id: it is the answer to Metadata
        assert str(client.connection.principal) == "User:alice"


@pytest.mark.parametrize("first", [b"\x60no ticket", b"\x60later", b"\x60", b"\x61alice@REALM", b"alice@REALM"])
async def test_a_first_frame_that_is_no_ticket_closes_the_connection(tmp_path: Path, first: bytes) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        client.send(raw(first))
        await closing(client)
        assert not client.wire.sent


async def test_a_token_is_no_way_around_a_handshake_that_was_said(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await handshake(client, "GSSAPI")
        client.send(raw(b"\x60alice@REALM"))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")


async def test_nothing_is_answered_between_token_and_choice(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await handshake(client, "GSSAPI")
        await authenticate(client, b"alice@REALM")
        client.send(request_frame(ALL_TOPICS, 12))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Yields a library that takes long: an event when it is called, and the function that lets it continue."""
    begun, goes_on = threading.Event(), threading.Event()

    class SlowContext(SaidContext):
        def accept(self, token: bytes) -> EstablishedContext:
            begun.set()
            assert goes_on.wait(LONG_S)
            return super().accept(token)

    slow = library(lambda _options, _clock: GssapiServer(SlowContext(), simple))
    monkeypatch.setattr(security, "kerberos_tickets", slow)
    try:
        yield begun, goes_on
    finally:
        goes_on.set()


async def until(event: threading.Event) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, LONG_S)


async def test_a_library_that_takes_long_holds_up_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as (begun, goes_on):
        async with served(tmp_path) as broker:
            client = stranger(broker)
            await handshake(client, "GSSAPI")
            message = SaslAuthenticateRequest(auth_bytes=b"alice@REALM")
            client.send(request_frame(message, 2) + request_frame(ALL_TOPICS, 12))  # the second has to wait
            await until(begun)
            assert (await stranger(broker).ask(HELLO, 4, ApiVersionsResponse)).error_code == 0
            assert (await broker.client().ask(ALL_TOPICS, 12, MetadataResponse)).brokers
            assert not client.wire.sent
            goes_on.set()
            await closing(client)  # over Metadata, which no stranger is answered
            assert len(client.wire.take()) == 1


async def test_who_goes_while_the_library_works_is_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(monkeypatch) as (begun, goes_on):
        async with served(tmp_path) as broker:
            client = stranger(broker)
            client.send(raw(b"\x60alice@REALM"))
            await until(begun)
            client.connection.connection_lost(None)
            goes_on.set()
            after = stranger(broker)
            assert (await log_in(after)).error_code == 0
            assert client.connection.principal == ANONYMOUS
            assert not client.wire.sent


async def test_a_listener_is_refused_that_lacks_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(security, "kerberos_tickets")
    monkeypatch.delitem(sys.modules, "broker.security.kerberos_tickets", raising=False)
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"GSSAPI needs python-gssapi.*pip install 'odradek\[gssapi\]'"):
        async with served(tmp_path):
            pass
