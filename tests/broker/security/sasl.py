"""A broker that requires SASL, and clients that authenticate frame by frame."""

from __future__ import annotations

import hashlib
import hmac
import struct
from pathlib import Path

from broker.clock import Clock
from programs.run.server import Server
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.metadata_records.security import UserScramCredentialRecord
from protocol.sasl.plain import plain_message
from protocol.sasl.scram_client import ScramClient
from tests.broker.inprocess import Client, InProcess
from tests.waiting import until

PLAIN_USERS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
)
OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    "connection.failed.authentication.delay.ms": "0",
}
OPEN, CLOSED = 0, 1
"""The listeners, by their index."""


def served(directory: Path, clock: Clock | None = None, /, **options: str) -> InProcess:
    """Yields a broker with both listeners; `options` are by attribute names."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    return InProcess(directory, {**OPTIONS, **given}, clock)


def add_user(server: Server, name: str, password: str, iterations: int = 4096) -> None:
    """Adds a SCRAM-SHA-256 user to the broker's image."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", iterations)
    stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    credential = UserScramCredentialRecord(
        name=name, mechanism=1, salt=b"salt", stored_key=stored_key,
        server_key=hmac.digest(salted, b"Server Key", "sha256"), iterations=iterations,
    )  # fmt: skip
    server.broker.image.apply(credential)


def stranger(broker: InProcess) -> Client:
    return Client(broker.server, CLOSED)


async def handshake(client: Client, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return await client.ask(SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse)


async def authenticate(client: Client, message: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(auth_bytes=message), version, SaslAuthenticateResponse)


async def log_in(client: Client, name: str = "alice", password: str = "alice-secret") -> SaslAuthenticateResponse:
    """Authenticates by PLAIN."""
    await handshake(client, "PLAIN")
    return await authenticate(client, plain_message(name, password))


async def scram(client: Client, name: str, password: str) -> SaslAuthenticateResponse:
    """Authenticates by SCRAM-SHA-256."""
    await handshake(client, "SCRAM-SHA-256")
    exchange = ScramClient("SCRAM-SHA-256", name, password, "nonce")
    challenge = await authenticate(client, exchange.first())
    return await authenticate(client, exchange.final(challenge.auth_bytes))


def raw(message: bytes) -> bytes:
    """Sends a SASL message as a separate frame."""
    return struct.pack(">i", len(message)) + message


async def closing(client: Client) -> None:
    """Returns once the broker has closed the connection."""
    await until(lambda: client.wire.closing)
