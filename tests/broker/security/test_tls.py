"""Tests listeners with TLS, over sockets: accepted clients, their principals, and the log lines about rejected
clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import uvloop

from broker.clock import SystemClock
from broker.network.connection_view import ConnectionView
from broker.network.tls import READ_BYTES, TlsTransport
from client.address import Address
from client.aio import connect
from client.authenticator import authenticator
from client.errors import PeerUnavailable
from client.settings import Settings
from protocol.config import ConfigError
from protocol.messages.fetch import FetchResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import ProduceResponse
from tests.broker.asking import batch, fetch_request, produce_request
from tests.broker.inprocess import InProcess, Wire, request_frame
from tests.broker.security.certificates import Authority, client_context
from tests.broker.security.sasl import PLAIN_USERS
from tests.waiting import until

ALL_TOPICS = MetadataRequest(topics=None)
LONG_MS = 30_000


@pytest.fixture(scope="module")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """Uses uvloop, because a broker's connections need it."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("certificates"))
    made.issue("server")
    made.issue("alice", "/C=US/O=x/OU=Users/CN=alice")
    return made


def options(authority: Authority, protocol: str = "SSL", **more: str) -> dict[str, str]:
    """Returns the options of a broker with one listener; `more` are by attribute names."""
    return {
        "listeners": "SECURE://127.0.0.1:0",
        "listener.security.protocol.map": f"SECURE:{protocol}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": PLAIN_USERS,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def address(broker: InProcess) -> Address:
    return Address("localhost", broker.server.advertised[0].port)


def settings(context: ssl.SSLContext) -> Settings:
    return Settings(tls=context, connect_timeout_ms=LONG_MS)


def principals(broker: InProcess) -> list[str]:
    (listener,) = broker.server.listeners
    return [str(connection.principal) for connection in listener.connections]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_records_come_and_go_as_without_tls(
    tmp_path: Path, authority: Authority, version: ssl.TLSVersion
) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        await broker.create_topic("t", max_message_bytes="10000000")
        context = client_context(authority)
        context.minimum_version = context.maximum_version = version
        connection = await connect(address(broker), settings(context), SystemClock())
        records = [batch(bytes([number]) * (number * 100_000 + 1)) for number in range(10)]
        for one in records:
            answer = await connection.send(
                produce_request("t", (0, one)), ProduceResponse, timeout_ms=LONG_MS, max_version=12
            )
            assert answer.responses[0].partition_responses[0].error_code == 0
        request = fetch_request("t", 0, max_bytes=100 << 20)
        fetched = await connection.send(request, FetchResponse, timeout_ms=LONG_MS, max_version=11)
        data = fetched.responses[0].partitions[0].records
        assert data is not None
        assert len(data) == sum(map(len, records))
        assert principals(broker) == ["User:ANONYMOUS"]
        await connection.close()


async def test_a_certificate_is_who_a_client_is(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority, ssl_client_auth="required")) as broker:
        context = client_context(authority, authority.directory / "alice.pem")
        connection = await connect(address(broker), settings(context), SystemClock())
        assert principals(broker) == ["User:CN=alice,OU=Users,O=x,C=US"]
        await connection.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_is_resumed_with_its_principal(
    tmp_path: Path, authority: Authority, version: ssl.TLSVersion
) -> None:
    context = client_context(authority, authority.directory / "alice.pem")
    context.minimum_version = context.maximum_version = version
    async with InProcess(tmp_path, options(authority, ssl_client_auth="required")) as broker:
        address_ = address(broker)

        def connected(session: ssl.SSLSession | None) -> ssl.SSLSocket:
            raw = socket.create_connection((address_.host, address_.port), LONG_MS / 1000)
            connection = context.wrap_socket(raw, server_hostname=address_.host, session=session)
            connection.sendall(request_frame(ALL_TOPICS, 1))
            assert connection.recv(1)  # TLS 1.3 sends the ticket after the handshake
            return connection

        with await asyncio.to_thread(connected, None) as first:
            assert not first.session_reused
            session = first.session
        with await asyncio.to_thread(connected, session) as second:
            assert second.session_reused
            assert "User:CN=alice,OU=Users,O=x,C=US" in principals(broker)


async def test_rules_make_a_name_of_the_subject(tmp_path: Path, authority: Authority) -> None:
    rules = "RULE:^CN=(.*?),OU=Users.*$/$1/U"
    given = options(authority, ssl_client_auth="requested", ssl_principal_mapping_rules=rules)
    async with InProcess(tmp_path, given) as broker:
        context = client_context(authority, authority.directory / "alice.pem")
        connection = await connect(address(broker), settings(context), SystemClock())
        assert principals(broker) == ["User:ALICE"]
        await connection.close()
        stranger = client_context(authority, authority.directory / "server.pem")
        with pytest.raises(PeerUnavailable):
            await connect(address(broker), settings(stranger), SystemClock(), timeout_ms=LONG_MS)


async def test_who_shows_no_certificate_is_refused_where_one_is_required(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority, ssl_client_auth="required")) as broker:
        with pytest.raises(PeerUnavailable):
            await connect(address(broker), settings(client_context(authority)), SystemClock())


async def test_who_shows_one_of_another_authority_is_refused(tmp_path: Path, authority: Authority) -> None:
    other = Authority(tmp_path, "other")
    other.issue("mallory")
    async with InProcess(tmp_path / "data", options(authority, ssl_client_auth="requested")) as broker:
        context = client_context(authority, other.directory / "mallory.pem")
        with pytest.raises(PeerUnavailable):
            await connect(address(broker), settings(context), SystemClock())


async def test_a_broker_of_another_authority_or_another_name_is_not_spoken_to(
    tmp_path: Path, authority: Authority
) -> None:
    async with InProcess(tmp_path / "data", options(authority)) as broker:
        with pytest.raises(PeerUnavailable, match="certificate verify failed"):
            await connect(address(broker), settings(client_context(Authority(tmp_path, "other"))), SystemClock())
        elsewhere = address(broker)._replace(host="127.0.0.2")
        with pytest.raises(PeerUnavailable, match=r"certificate|refused"):
            await connect(elsewhere, settings(client_context(authority)), SystemClock())


async def test_sasl_goes_inside_of_tls(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority, "SASL_SSL")) as broker:
        to = settings(client_context(authority))
        log_in = to._replace(authenticators=(authenticator("PLAIN", "alice", "alice-secret", bytes),))
        connection = await connect(address(broker), log_in, SystemClock())
        assert (await connection.send(ALL_TOPICS, MetadataResponse, timeout_ms=LONG_MS)).brokers
        assert principals(broker) == ["User:alice"]
        await connection.close()
        stranger = await connect(address(broker), to, SystemClock())
        with pytest.raises(PeerUnavailable):
            await stranger.send(ALL_TOPICS, MetadataResponse, timeout_ms=LONG_MS)


@pytest.mark.parametrize("sent", [request_frame(ALL_TOPICS, 12), b"GET / HTTP/1.1\r\n\r\n"])
async def test_what_is_no_tls_is_closed(tmp_path: Path, authority: Authority, sent: bytes) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        reader, writer = await asyncio.open_connection("127.0.0.1", address(broker).port)
        writer.write(sent)
        async with asyncio.timeout(30):
            answer = await reader.read()
        assert len(answer) < 20  # an alert, or nothing
        writer.close()


async def test_a_handshake_has_so_much_time_and_counts_as_a_connection(tmp_path: Path, authority: Authority) -> None:
    given = options(authority, odradek_authentication_timeout_ms="200", max_connections_per_ip="2")
    async with InProcess(tmp_path, given) as broker:
        held = [await asyncio.open_connection("127.0.0.1", address(broker).port) for _ in range(3)]
        async with asyncio.timeout(30):
            assert await held[2][0].read() == b""
            assert [await reader.read() for reader, _ in held[:2]] == [b"", b""]
        for _, writer in held:
            writer.close()


async def test_a_farewell_is_answered_by_one(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        port = address(broker).port

        def leave() -> socket.socket:
            with socket.create_connection(("127.0.0.1", port), timeout=LONG_MS / 1000) as connection:
                return client_context(authority).wrap_socket(connection, server_hostname="localhost").unwrap()

        await asyncio.to_thread(leave)  # raises unless a farewell comes back


async def test_nobody_renegotiates(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        port = address(broker).port
        client = await asyncio.create_subprocess_exec(
            "openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2", "-CAfile", str(authority.certificate),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(30):
            output, _ = await client.communicate(b"R\n")
        assert b"RENEGOTIATING" in output
        assert b"no renegotiation" in output


async def test_new_certificates_are_those_of_new_connections(tmp_path: Path, authority: Authority) -> None:
    own = Authority(tmp_path, "own")
    own.issue("server")
    option = "listener.name.secure.ssl.keystore.location"
    async with InProcess(tmp_path / "data", {**options(own), option: str(own.directory / "server.pem")}) as broker:
        connection = await connect(address(broker), settings(client_context(own)), SystemClock())
        live = broker.server.broker.live_config
        live.layers = live.layers.changed(broker={option: str(authority.directory / "server.pem")})
        await broker.settled()
        renewed = await connect(address(broker), settings(client_context(authority)), SystemClock())
        live.layers = live.layers.changed(broker={option: str(tmp_path / "missing.pem")})
        await broker.settled()
        same = await connect(address(broker), settings(client_context(authority)), SystemClock())
        for one in (connection, renewed, same):
            assert (await one.send(ALL_TOPICS, MetadataResponse, timeout_ms=LONG_MS)).brokers
            await one.close()


async def test_another_subject_in_the_same_file_is_not_taken(tmp_path: Path, authority: Authority) -> None:
    own = Authority(tmp_path, "own")
    own.issue("server")
    keystore = {"ssl.keystore.location": str(own.directory / "server.pem")}
    async with InProcess(tmp_path / "data", {**options(own), **keystore}) as broker:
        live = broker.server.broker.live_config
        first = await serial_number(broker, own)
        own.issue("server", "/CN=another")
        live.layers = live.layers.changed(broker={"log.retention.ms": "1000000"})
        await broker.settled()
        assert await serial_number(broker, own) == first
        own.issue("server")
        live.layers = live.layers.changed(broker={"log.retention.ms": "1000001"})
        await broker.settled()
        assert await serial_number(broker, own) != first


async def serial_number(broker: InProcess, authority: Authority) -> str:
    """Returns the serial number of the broker's certificate."""
    _, writer = await asyncio.open_connection("localhost", address(broker).port, ssl=client_context(authority))
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return str(certificate["serialNumber"])


async def test_each_entry_of_a_trust_store_is_trusted_by_itself(tmp_path: Path, authority: Authority) -> None:
    between = authority.signed("between", tmp_path)
    between.issue("carol", "/CN=carol")
    trusting = options(authority, ssl_client_auth="required", ssl_truststore_location=str(between.certificate))
    async with InProcess(tmp_path / "data", trusting) as broker:
        context = client_context(authority, between.directory / "carol.pem")
        connection = await connect(address(broker), settings(context), SystemClock())
        assert principals(broker) == ["User:CN=carol"]
        await connection.close()


async def test_a_peer_that_does_not_read_holds_no_encrypted_answers(tmp_path: Path, authority: Authority) -> None:
    async with InProcess(tmp_path, options(authority)) as broker:
        await broker.create_topic("t", max_message_bytes="100000000")
        connection = await connect(address(broker), settings(client_context(authority)), SystemClock())
        for _ in range(8):
            await connection.send(
                produce_request("t", (0, batch(bytes(8 << 20)))), ProduceResponse, timeout_ms=LONG_MS, max_version=12
            )
        raw = socket.create_connection(("127.0.0.1", address(broker).port), timeout=30)
        silent = await asyncio.to_thread(client_context(authority).wrap_socket, raw, server_hostname="localhost")
        silent.sendall(request_frame(fetch_request("t", 0, max_bytes=100 << 20), 11))
        (listener,) = broker.server.listeners
        await until(lambda: any(one.transport.get_write_buffer_size() > 32 << 20 for one in listener.connections))
        (held,) = [one.transport for one in listener.connections if one.transport.get_write_buffer_size() > 32 << 20]
        encrypted = held.get_write_buffer_size() - held.backlog_bytes  # type: ignore[attr-defined]
        assert encrypted < 1 << 20
        silent.close()
        await connection.close()


class Above:
    """A connection above TLS that accepts all bytes."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


async def test_a_peer_that_does_not_read_is_not_read_from(authority: Authority) -> None:
    """TLS itself answers some messages, such as key updates. If the broker went on reading, these answers would pile up
    for a client that doesn't read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.directory / "server.pem")
    wire, above = Wire(), cast(ConnectionView, Above())
    tls = TlsTransport(context, memoryview(bytearray(1)), lambda: above, lambda *_: None, lambda *_: None)
    tls.connection_made(wire)
    states = {"begun": wire.reading}
    for step in (tls.pause_writing, tls.resume_reading, tls.resume_writing, tls.pause_reading, tls.pause_writing,
                 tls.resume_writing, tls.resume_reading):  # fmt: skip
        step()
        states[f"{len(states)} {step.__name__}"] = wire.reading
    assert states == {
        "begun": True,
        "1 pause_writing": False,
        "2 resume_reading": False,
        "3 resume_writing": True,
        "4 pause_reading": False,
        "5 pause_writing": False,
        "6 resume_writing": False,
        "7 resume_reading": True,
    }


class Exchange:
    """A TLS connection to a client in the same process."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext, buffer: memoryview) -> None:
        self.wire = Wire()
        self.buffer = buffer
        above = cast(ConnectionView, Receiving())
        self.tls = TlsTransport(server, buffer, lambda: above, lambda *_: None, lambda *_: None)
        self.tls.connection_made(self.wire)
        self.arrived, self.sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self.arrived, self.sent, server_hostname="localhost")
        for _ in range(2):
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.deliver(self.sent.read())
            self.arrived.write(bytes(self.wire.sent))
            self.wire.sent.clear()

    def deliver(self, encrypted: bytes) -> None:
        for start in range(0, len(encrypted), len(self.buffer)):
            piece = encrypted[start : start + len(self.buffer)]
            self.buffer[: len(piece)] = piece
            self.tls.buffer_updated(len(piece))


class Receiving(Above):
    """A connection that counts what arrives."""

    def __init__(self) -> None:
        self.received = 0
        self._target = memoryview(bytearray(READ_BYTES))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._target

    def buffer_updated(self, count: int) -> None:
        self.received += count


def resident_kb() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


async def test_a_connection_keeps_no_large_buffers(authority: Authority) -> None:
    """OpenSSL's buffers in memory never become smaller: a thousand connections would keep what each once needed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.directory / "server.pem")
    buffer, megabyte, count = memoryview(bytearray(READ_BYTES)), bytes(1 << 20), 50
    exchanges = [Exchange(context, client_context(authority), buffer) for _ in range(count)]
    requests = []
    for exchange in exchanges:
        exchange.client.write(megabyte)
        requests.append(exchange.sent.read())
    before_kb = resident_kb()
    for exchange, request in zip(exchanges, requests, strict=True):
        exchange.deliver(request)
        assert cast(Receiving, exchange.tls._connection).received == len(megabyte)
        exchange.tls.write(megabyte)
        assert len(exchange.wire.sent) > len(megabyte)
        exchange.wire.sent = bytearray()
    assert (resident_kb() - before_kb) / count < 250


@pytest.mark.parametrize(("change", "problem"), [
    ({"ssl.keystore.type": "JKS"}, "server.pem is PEM, and ssl.keystore.type is JKS; set ssl.keystore.type=PEM"),
    ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type: BKS is not one of PEM, PKCS12, JKS"),
    ({"ssl.keystore.password": "x"}, "SSL key store password cannot be specified with PEM format"),
    ({"ssl.truststore.password": "x", "ssl.client.auth": "required"}, "trust store password cannot be specified for"),
    ({"ssl.keystore.key": "x"}, "SSL private key is specified, but certificate chain is not specified."),
    ({"ssl.keystore.location": "/nowhere"}, "ssl.keystore.location: /nowhere: No such file"),
    ({"ssl.keystore.location": "CA"}, "no private key with its certificates as PEM"),
    ({"ssl.enabled.protocols": "TLSv1"}, "ssl.enabled.protocols: TLSv1 is not one of TLSv1.2, TLSv1.3"),
    ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "ssl.cipher.suites: OpenSSL supports none of TLS_NO_SUCH"),
    ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "either all or none of the suites of TLS 1.3 must be listed"),
    ({"ssl.principal.mapping.rules": "RULE:a"}, "ssl.principal.mapping.rules: 'RULE:a' is not RULE:pattern"),
    ({"ssl.client.auth": "required", "ssl.truststore.location": "/nowhere"}, "ssl.truststore.location: /nowhere"),
])  # fmt: skip
async def test_what_cannot_be_used_stops_the_start(
    tmp_path: Path, authority: Authority, change: dict[str, str], problem: str
) -> None:
    authority.certificate.chmod(0o600)
    change = {name: str(authority.certificate) if value == "CA" else value for name, value in change.items()}
    broker = InProcess(tmp_path, {**options(authority), **change})
    with pytest.raises(ConfigError) as failed:
        await broker.server.start()
    assert problem in failed.value.message
    await broker.server.stop()


async def test_a_key_that_others_may_read_is_refused(tmp_path: Path, authority: Authority) -> None:
    shared = tmp_path / "shared.pem"
    shared.write_bytes((authority.directory / "server.pem").read_bytes())
    shared.chmod(0o604)
    broker = InProcess(tmp_path / "data", options(authority, ssl_keystore_location=str(shared)))
    with pytest.raises(ConfigError, match=r"other users can read it \(mode 604\)"):
        await broker.server.start()
    await broker.server.stop()


async def test_a_key_may_stand_in_the_options(tmp_path: Path, authority: Authority) -> None:
    given = options(authority)
    del given["ssl.keystore.location"]
    given["ssl.keystore.key"] = (authority.directory / "server.key").read_text()
    given["ssl.keystore.certificate.chain"] = (authority.directory / "server.crt").read_text()
    async with InProcess(tmp_path, given) as broker:
        connection = await connect(address(broker), settings(client_context(authority)), SystemClock())
        await connection.close()
