"""SCRAM-SHA-256 and SCRAM-SHA-512: the client proves that it knows a password without sending it (RFC 5802, RFC 7677).

The broker never sees a password, and never iterates: it has keys that were derived when the credential was created. An
unknown user gets a salt and a challenge like an existing user, and fails at the same message.
Source: org.apache.kafka.common.security.scram.internals.ScramSaslServer, ScramMessages, ScramFormatter.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError

DIGESTS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash of each mechanism."""

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384
"""Bounds of both mechanisms (ScramMechanism): fewer iterations make guessing too cheap, more make each login too
expensive."""

DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f\u0080-\U0010ffff]|=2C|=3D)+"
PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
EXTENSIONS: Final = rf"(?:,[A-Za-z]+={VALUE})*"

CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{SASLNAME}))?,)(?:m={VALUE},)?"
    rf"(?P<bare>n=(?P<name>{SASLNAME}),r=(?P<nonce>{PRINTABLE})(?P<extensions>{EXTENSIONS}))"
)
CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{BASE64}),r=(?P<nonce>{PRINTABLE})){EXTENSIONS},p=(?P<proof>{BASE64})"
)
SERVER_FIRST: Final = re.compile(
    rf"(?:m={VALUE},)?r=(?P<nonce>{PRINTABLE}),s=(?P<salt>{BASE64}),i=(?P<iterations>[0-9]{{1,9}}){EXTENSIONS}"
)
SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>[^=,]+)|v=(?P<signature>{BASE64})){EXTENSIONS}")


class Credential(NamedTuple):
    """The keys of a user, as in the metadata log (UserScramCredentialRecord)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


Lookup = Callable[[str], Credential | None]

Absent = Callable[[str], Credential]
"""Returns the credential of an unknown user, which no password matches."""


class TokenCredential(NamedTuple):
    """The keys of a delegation token (KIP-48), and its owner."""

    keys: Credential
    owner: str
    """The owner's user name."""
    expires_ms: int
    """The token's expiry, in milliseconds since 1970."""


TokenLookup = Callable[[str], TokenCredential | None]


def no_token(_: str) -> TokenCredential | None:
    """Returns None, for a broker without delegation tokens."""
    return None


class ScramServer:
    """The broker's side of an exchange, in which the client sends two messages."""

    def __init__(
        self, mechanism: str, find: Lookup, absent: Absent, nonce: str, find_token: TokenLookup = no_token
    ) -> None:
        """`find` returns a user's keys by name, `find_token` a delegation token by id, and `absent` keys for an unknown
        name. `nonce` is random, and new for each exchange."""
        self._digest = DIGESTS[mechanism]
        self._find = find
        self._find_token = find_token
        self._absent = absent
        self._nonce = nonce
        self._name = ""
        self._token: TokenCredential | None = None
        """The delegation token that the client uses, or None."""
        self._first: re.Match[str] | None = None
        self._server_first = ""
        self._keys: Credential | None = None
        """The keys that check the client's proof; None before its first message."""
        self._exists = False
        self._is_over = False

    def step(self, message: bytes) -> ExchangeStep:
        """Processes the client's first or final message. Raises SaslError."""
        if self._is_over:
            raise SaslError("a message arrived after the end of the exchange")
        text = message.decode("utf-8", "replace")
        return self._begin(text) if self._first is None else self._end(self._first, text)

    def _begin(self, text: str) -> ExchangeStep:
        first = CLIENT_FIRST.fullmatch(text)
        if first is None:
            raise SaslError("the client's first message is not a SCRAM message")
        name = unescaped(first["name"])
        if first["authzid"] is not None and unescaped(first["authzid"]) != name:
            reason = "Authentication failed: Client requested an authorization id that is different from username"
            raise SaslError(reason, may_be_told=True)
        self._first, self._name = first, name
        absent = self._absent(name)  # computed for existing users too, so that the time reveals nothing
        if is_token(first["extensions"]):
            self._token = self._find_token(name)
            keys = None if self._token is None else self._token.keys
        else:
            keys = self._find(name)
        self._exists = keys is not None
        self._keys = keys = keys or absent
        salt = base64.b64encode(keys.salt).decode()
        self._server_first = f"r={first['nonce']}{self._nonce},s={salt},i={keys.iterations}"
        return ExchangeStep(self._server_first.encode())

    def _end(self, first: re.Match[str], text: str) -> ExchangeStep:
        self._is_over = True
        final = CLIENT_FINAL.fullmatch(text)
        if final is None:
            raise SaslError("the client's final message is not a SCRAM message")
        is_bound = base64.b64decode(final["channel"]) == first["header"].encode()
        # librdkafka before 2.6.1 sends its own nonce twice before the broker's, and Apache Kafka accepts it
        is_fresh = final["nonce"].endswith(f"{first['nonce']}{self._nonce}")
        keys = self._keys
        assert keys is not None, "a first message has come"
        exchanged = f"{first['bare']},{self._server_first},{final['bare']}".encode()
        signature = hmac.digest(keys.stored_key, exchanged, self._digest)
        proof = base64.b64decode(final["proof"])
        stored_key = hashlib.new(self._digest, xor(signature, proof)).digest()
        is_proven = hmac.compare_digest(stored_key, keys.stored_key)
        if not (is_proven and is_bound and is_fresh and self._exists):
            raise SaslError("the password is wrong, or there is no such user or token")
        verifier = hmac.digest(keys.server_key, exchanged, self._digest)
        return ExchangeStep(f"v={base64.b64encode(verifier).decode()}".encode(), self._identity())

    def _identity(self) -> ProvenIdentity:
        token = self._token
        return ProvenIdentity(self._name) if token is None else ProvenIdentity(token.owner, token.expires_ms, True)


def is_token(extensions: str) -> bool:
    """True if the extensions of a first message mark the name as the id of a delegation token."""
    pairs = dict(pair.split("=", 1) for pair in extensions.split(",") if pair)
    return pairs.get("tokenauth", "").lower() == "true"


def xor(left: bytes, right: bytes) -> bytes:
    """Returns the exclusive or of both, or `left` unchanged if their sizes differ."""
    if len(left) != len(right):
        return left
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))


def base36(number: int) -> str:
    """Returns a number in base 36, as Java's BigInteger writes it."""
    digits = ""
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits or "0"


def escaped(name: str) -> str:
    """Escapes a name for a message."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """Returns the name of an escaped name in a message."""
    return name.replace("=2C", ",").replace("=3D", "=")
