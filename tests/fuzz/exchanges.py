"""The exchanges with which an unauthenticated client tries to connect: SASL, in frames or without, and TLS handshakes.

A script is a generator: it yields the bytes to send, and receives the answers.
"""

from __future__ import annotations

import random
import re
import ssl
import struct
from collections.abc import Callable, Generator
from typing import Final, NamedTuple, TypeAlias

from protocol.codec import MALFORMED
from protocol.errors import ProtocolError
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.sasl.exchange import SaslError
from protocol.sasl.plain import plain_message
from protocol.sasl.scram_client import ScramClient
from tests.broker.inprocess import decode_response, request_frame

Steps: TypeAlias = Generator[bytes, bytes, None]
"""Yields the bytes to send, and receives the answers."""

Say: TypeAlias = Callable[[bytes], bytes]
"""Converts a mechanism's message to the bytes on the wire."""

Hear: TypeAlias = Callable[[bytes], bytes]
"""Extracts a mechanism's message from an answer."""

Messages: TypeAlias = Callable[[random.Random, Say, Hear], Steps]
Exchange: TypeAlias = Callable[[random.Random], Steps]

USER, PASSWORD = "alice", "alice-secret"
SIZE: Final = struct.Struct(">i")
AUTHENTICATE_VERSION: Final = 2
MOST_FLIGHTS: Final = 6


def request_bytes(request: object, version: int) -> bytes:
    """Returns a request with its size field."""
    return request_frame(request, version)


def in_frame(message: bytes) -> bytes:
    return request_bytes(SaslAuthenticateRequest(auth_bytes=message), AUTHENTICATE_VERSION)


def out_of_frame(answer: bytes) -> bytes:
    """Returns the broker's message; empty if the answer has none."""
    try:
        return decode_response(answer[4:], 36, AUTHENTICATE_VERSION, SaslAuthenticateResponse).auth_bytes
    except (ProtocolError, AssertionError, struct.error, *MALFORMED):
        return b""


def bare(message: bytes) -> bytes:
    return SIZE.pack(len(message)) + message


def out_of_bare(answer: bytes) -> bytes:
    return answer[SIZE.size :]


def plain(rng: random.Random, say: Say, hear: Hear) -> Steps:
    yield say(plain_message(USER, PASSWORD))


def scram(rng: random.Random, say: Say, hear: Hear) -> Steps:
    client = ScramClient("SCRAM-SHA-256", USER, PASSWORD, f"nonce{rng.randrange(1 << 30)}")
    answer = yield say(client.first())
    try:
        final = client.final(hear(answer))
    except SaslError:
        final = b"c=biws,r=nonce,p=" + b"A" * 43 + b"="
    yield say(final)


def token(rng: random.Random, say: Say, hear: Hear) -> Steps:
    """Sends a token in OAUTHBEARER's format (RFC 7628), whatever mechanism was chosen."""
    parts = (rng.randbytes(rng.randrange(60)).hex() for _ in range(rng.choice((1, 2, 3, 3, 3, 4))))
    yield say(b"n,,\x01auth=Bearer " + ".".join(parts).encode() + b"\x01\x01")


def handshake(mechanism: str, version: int, messages: Messages) -> Exchange:
    """Returns an exchange after a SaslHandshake."""

    def begin(rng: random.Random) -> Steps:
        if rng.random() < 0.3:
            yield request_bytes(ApiVersionsRequest(client_software_name="f", client_software_version="1"), 3)
        yield request_bytes(SaslHandshakeRequest(mechanism=mechanism), version)
        yield from messages(rng, *((in_frame, out_of_frame) if version else (bare, out_of_bare)))

    return begin


class Script(NamedTuple):
    """A way to connect."""

    name: str
    exchange: Exchange | None
    """The SASL exchange; None for TLS alone."""
    length: int
    """The approximate number of steps."""
    proof: re.Pattern[bytes] | None = None
    """The proof of the password; None if no client may be authenticated."""
    is_secured: bool = False

    def begin(self, rng: random.Random, context: ssl.SSLContext, *, has_sasl: bool) -> Steps:
        """Returns its steps."""
        if self.is_secured:
            return tls(context, self.exchange(rng) if self.exchange is not None and has_sasl else None)
        assert self.exchange is not None
        return self.exchange(rng)

    def proves(self, sent: bytes, meant: bytes) -> bool:
        """True if the correct proof was sent. With TLS this can't be observed."""
        if self.is_secured:
            return True
        shown = None if self.proof is None else self.proof.search(meant)
        return shown is not None and shown[0] in sent


def tls(context: ssl.SSLContext, then: Steps | None) -> Steps:
    """Yields a TLS handshake, and the bytes after it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    for _ in range(MOST_FLIGHTS):
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            incoming.write((yield outgoing.read()))
    if then is None:
        incoming.write((yield outgoing.read() or b"\x17\x03\x03\x00\x00"))
        return
    message = next(then)
    while True:
        client.write(message)
        incoming.write((yield outgoing.read()))
        try:
            message = then.send(readable(client))
        except StopIteration:
            return


def readable(client: ssl.SSLObject) -> bytes:
    """Returns the bytes that have arrived by now."""
    try:
        return client.read(65_536)
    except ssl.SSLWantReadError:
        return b""


PLAIN_PROOF: Final = re.compile(f"{USER}\0{PASSWORD}".encode())
SCRAM_PROOF: Final = re.compile(rb",p=[A-Za-z0-9+/]+=*")
SCRIPTS: Final = (
    Script("PLAIN in frames", handshake("PLAIN", 1, plain), 2, PLAIN_PROOF),
    Script("PLAIN without frames", handshake("PLAIN", 0, plain), 2, PLAIN_PROOF),
    Script("SCRAM in frames", handshake("SCRAM-SHA-256", 1, scram), 3, SCRAM_PROOF),
    Script("SCRAM without frames", handshake("SCRAM-SHA-256", 0, scram), 3, SCRAM_PROOF),
    Script("a token for PLAIN", handshake("PLAIN", 1, token), 2),
    Script("a token for SCRAM", handshake("SCRAM-SHA-512", 1, token), 2),
)
"""The scripts of listeners without encryption."""

TLS_SCRIPTS: Final = (
    Script("TLS", None, 2, is_secured=True),
    Script("PLAIN in TLS", handshake("PLAIN", 1, plain), 4, is_secured=True),
    Script("SCRAM in TLS", handshake("SCRAM-SHA-256", 1, scram), 5, is_secured=True),
)
"""The scripts of listeners with encryption."""
