"""The security matrix: the ways in, what is refused, and what each client is told. The tests and
docs/security-clients.md derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.interop.clients.secured import Access
    from tests.interop.secured_broker import SecuredBroker


class Way(NamedTuple):
    """A way in."""

    name: str
    access: Callable[[SecuredBroker], Access]


class Refusal(NamedTuple):
    """What a client does wrong, or may not do."""

    name: str
    access: Callable[[SecuredBroker], Access]
    lets_in: bool = False
    """True where it gets in, and may not use the topic."""


WAYS = (
    Way("SSL", lambda broker: broker.access("TLS")),
    Way("SSL with a certificate", lambda broker: broker.access("MUTUAL", certificate=broker.certificates.alice)),
    Way("SASL_SSL, PLAIN", lambda broker: broker.access("SASL", mechanism="PLAIN")),
    Way("SASL_SSL, SCRAM-SHA-256", lambda broker: broker.access("SASL", mechanism="SCRAM-SHA-256")),
    Way("SASL_PLAINTEXT, SCRAM-SHA-512", lambda broker: broker.access("BARE", mechanism="SCRAM-SHA-512")),
)

WRONG_PLAIN, WRONG_SCRAM = "a wrong password, PLAIN", "a wrong password, SCRAM"
UNKNOWN_USER = "an unknown user, SCRAM"
UNTRUSTED, EXPIRED = "the broker's authority is unknown to it", "the broker's certificate has expired"
STRANGE, OUTDATED = "its own authority is unknown to the broker", "its own certificate has expired"
NO_ENTRY = "no entry lets it use the topic"

REFUSALS = (
    Refusal(WRONG_PLAIN, lambda broker: broker.access("SASL", mechanism="PLAIN", password="wrong")),
    Refusal(WRONG_SCRAM, lambda broker: broker.access("SASL", mechanism="SCRAM-SHA-256", password="wrong")),
    Refusal(UNKNOWN_USER, lambda broker: broker.access("BARE", mechanism="SCRAM-SHA-512", user="mallory")),
    Refusal(UNTRUSTED, lambda broker: broker.access("TLS", authority=broker.certificates.stranger.certificate)),
    Refusal(EXPIRED, lambda broker: broker.access("EXPIRED")),
    Refusal(STRANGE, lambda broker: broker.access("MUTUAL", certificate=broker.certificates.strange_alice)),
    Refusal(OUTDATED, lambda broker: broker.access("MUTUAL", certificate=broker.certificates.expired_alice)),
    Refusal(NO_ENTRY, lambda broker: broker.access("SASL", mechanism="SCRAM-SHA-256"), lets_in=True),
)

TOLD: dict[str, dict[str, str]] = {
    WRONG_PLAIN: {"": "Invalid username or password"},
    WRONG_SCRAM: {"": "invalid credentials"},
    UNKNOWN_USER: {"": "invalid credentials"},
    UNTRUSTED: {"": "certificate"},
    EXPIRED: {"": "certificate"},
    STRANGE: {"": ""},
    OUTDATED: {"": ""},
    NO_ENTRY: {"": "uthoriz"},
}
"""The words in which clients tell what was wrong; those of the client without a name are all others'."""


def told(refusal: Refusal, client: str) -> str:
    """Returns what a client tells, in its own words."""
    words = TOLD[refusal.name]
    return words.get(client, words[""])


def tables(clients: Iterable[str]) -> Iterator[str]:
    """Yields a table in Markdown for each refusal."""
    for refusal in REFUSALS:
        yield f"\n## Refused: {refusal.name}\n\n| client | is told |\n| --- | --- |\n"
        yield from (f"| {client} | {told(refusal, client)} |\n" for client in clients)
