"""The security matrix: the clients, the ways to connect, the rejections, and each client's error messages. The tests
and docs/security-clients.md are derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tests.interop.clients.secured import Access, SecuredClient
    from tests.interop.secured_broker import SecuredBroker

OAUTHBEARER = "OAUTHBEARER"


class Client(NamedTuple):
    """A column of the matrix."""

    name: str
    make: Callable[[Path], SecuredClient]
    """Creates the client, given a folder for its files and logs."""
    lacks: frozenset[str] = frozenset()
    """The mechanisms that it doesn't support."""


class Way(NamedTuple):
    """A way to connect."""

    name: str
    access: Callable[[SecuredBroker], Access]
    mechanism: str = ""


class Refusal(NamedTuple):
    """A wrong or forbidden action of a client."""

    name: str
    access: Callable[[SecuredBroker], Access]
    mechanism: str = ""
    lets_in: bool = False
    """True if the client can connect, but may not use the topic."""


def _librdkafka(name: str) -> Callable[[Path], SecuredClient]:
    def make(_: Path) -> SecuredClient:
        from tests.interop.clients import secured_librdkafka

        client: SecuredClient = getattr(secured_librdkafka, name)()
        return client

    return make


def _python(name: str) -> Callable[[Path], SecuredClient]:
    def make(_: Path) -> SecuredClient:
        from tests.interop.clients import secured_python

        client: SecuredClient = getattr(secured_python, name)()
        return client

    return make


def _kafkajs(folder: Path) -> SecuredClient:
    from tests.interop.clients import secured_lines

    return secured_lines.kafkajs(folder)


def _java(version: str, *, by_handler: bool = False) -> Callable[[Path], SecuredClient]:
    def make(folder: Path) -> SecuredClient:
        from tests.interop.clients import secured_lines

        return secured_lines.java(version, folder, by_handler=by_handler)

    return make


def _tools(folder: Path) -> SecuredClient:
    from tests.interop.clients import secured_lines

    return secured_lines.ApacheTools(folder)


CLIENTS: Final = (
    Client("kcat", _librdkafka("Kcat"), frozenset({OAUTHBEARER})),
    Client("confluent-kafka", _librdkafka("Confluent")),
    Client("kafka-python", _python("KafkaPython")),
    Client("aiokafka", _python("AioKafka")),
    Client("kafkajs", _kafkajs),
    Client("Java 2.8.2", _java("2.8.2", by_handler=True)),
    Client("Java 4.3.1", _java("4.3.1", by_handler=True)),
    Client("Apache Kafka's tools", _tools),
)

WAYS: Final = (
    Way("SSL", lambda broker: broker.access("TLS")),
    Way("SSL with a certificate", lambda broker: broker.access("MUTUAL", certificate=broker.certificates.alice)),
    Way("SASL_SSL, PLAIN", lambda broker: broker.access("SASL", mechanism="PLAIN"), "PLAIN"),
    Way("SASL_SSL, SCRAM-SHA-256", lambda broker: broker.access("SASL", mechanism="SCRAM-SHA-256"), "SCRAM-SHA-256"),
    Way(
        "SASL_PLAINTEXT, SCRAM-SHA-512",
        lambda broker: broker.access("BARE", mechanism="SCRAM-SHA-512"),
        "SCRAM-SHA-512",
    ),
    Way("SASL_SSL, OAUTHBEARER", lambda broker: broker.access_by_token(broker.tokens.right), OAUTHBEARER),
)

WRONG_PLAIN, WRONG_SCRAM = "a wrong password, PLAIN", "a wrong password, SCRAM"
UNKNOWN_USER = "an unknown user, SCRAM"
ENDED, OF_OTHERS, FORGED = "a token that has ended", "a token for another audience", "a token of another issuer's key"
UNTRUSTED, EXPIRED = "the broker's authority is unknown to it", "the broker's certificate has expired"
STRANGE, OUTDATED = "its own authority is unknown to the broker", "its own certificate has expired"
NAMELESS = "it has no certificate"
NO_ENTRY = "no entry lets it use the topic"

REFUSALS: Final = (
    Refusal(WRONG_PLAIN, lambda broker: broker.access("SASL", mechanism="PLAIN", password="wrong"), "PLAIN"),
    Refusal(
        WRONG_SCRAM,
        lambda broker: broker.access("SASL", mechanism="SCRAM-SHA-256", password="wrong"),
        "SCRAM-SHA-256",
    ),
    Refusal(
        UNKNOWN_USER,
        lambda broker: broker.access("BARE", mechanism="SCRAM-SHA-512", user="mallory"),
        "SCRAM-SHA-512",
    ),
    Refusal(ENDED, lambda broker: broker.access_by_token(broker.tokens.ended), OAUTHBEARER),
    Refusal(OF_OTHERS, lambda broker: broker.access_by_token(broker.tokens.of_others), OAUTHBEARER),
    Refusal(FORGED, lambda broker: broker.access_by_token(broker.tokens.forged), OAUTHBEARER),
    Refusal(UNTRUSTED, lambda broker: broker.access("TLS", authority=broker.certificates.stranger.certificate)),
    Refusal(EXPIRED, lambda broker: broker.access("EXPIRED")),
    Refusal(STRANGE, lambda broker: broker.access("MUTUAL", certificate=broker.certificates.strange_alice)),
    Refusal(OUTDATED, lambda broker: broker.access("MUTUAL", certificate=broker.certificates.expired_alice)),
    Refusal(NAMELESS, lambda broker: broker.access("MUTUAL")),
    Refusal(NO_ENTRY, lambda broker: broker.access("SASL", mechanism="SCRAM-SHA-256"), "SCRAM-SHA-256", lets_in=True),
)

JVMS: Final = ("Java 2.8.2", "Java 4.3.1", "Apache Kafka's tools")
CLOSED: Final = {"aiokafka": "closed"}
"""Clients that only learn that the connection was closed: asyncio doesn't pass on an alert that arrives after the
handshake."""

TOKEN_REFUSED: Final = {
    "": '{"status":"invalid_token"}',
    "aiokafka": "closed",  # both take the refusal of a token, which is to be acknowledged, for the end of the exchange
    "kafkajs": "Closed connection",
}
IN_HANDSHAKE: Final = dict.fromkeys(JVMS, "SSL handshake failed")
AFTER_HANDSHAKE: Final = {**dict.fromkeys(JVMS, "Failed to process post-handshake messages"), **CLOSED}

TOLD: Final[dict[str, dict[str, str]]] = {
    WRONG_PLAIN: {"": "Authentication failed: Invalid username or password"},
    WRONG_SCRAM: {"": "invalid credentials with SASL mechanism SCRAM-SHA-256"},
    UNKNOWN_USER: {"": "invalid credentials with SASL mechanism SCRAM-SHA-512"},
    ENDED: TOKEN_REFUSED,
    OF_OTHERS: TOKEN_REFUSED,
    FORGED: TOKEN_REFUSED,
    UNTRUSTED: {"": "certificate verify failed", "kafkajs": "unable to verify the first certificate", **IN_HANDSHAKE},
    EXPIRED: {"": "certificate verify failed", "kafkajs": "certificate has expired", **IN_HANDSHAKE},
    STRANGE: {"": "alert unknown ca", **AFTER_HANDSHAKE},
    OUTDATED: {"": "alert certificate expired", **AFTER_HANDSHAKE},
    NAMELESS: {"": "alert certificate required", **AFTER_HANDSHAKE},
    NO_ENTRY: {
        "": "Topic authorization failed",
        "kafka-python": "not authorized for this client",
        "aiokafka": "not authorized for this client",
        "kafkajs": "Not authorized",
        **dict.fromkeys(JVMS, "Not authorized to access topics"),
    },
}
"""The clients' error messages; those of the client without a name apply to all other clients."""


def words_of(refusal: Refusal, client: str) -> str:
    """Returns the error message of a client."""
    words = TOLD[refusal.name]
    return words.get(client, words[""])


def matrix() -> Iterator[str]:
    """Yields the table of the ways to connect, in Markdown."""
    names = [client.name for client in CLIENTS]
    yield f"| | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}\n"
    for way in WAYS:
        cells = ("–" if way.mechanism in client.lacks else "yes" for client in CLIENTS)
        yield f"| {way.name} | {' | '.join(cells)} |\n"


def refusals() -> Iterator[str]:
    """Yields a table in Markdown of clients' error messages for each rejection; clients with the same message share a
    row."""
    for refusal in REFUSALS:
        yield f"\n## Refused: {refusal.name}\n\n| clients | words |\n| --- | --- |\n"
        by_words: dict[str, list[str]] = {}
        for client in CLIENTS:
            if refusal.mechanism not in client.lacks:
                by_words.setdefault(words_of(refusal, client.name), []).append(client.name)
        yield from (f"| {', '.join(names)} | `{words}` |\n" for words, names in by_words.items())
