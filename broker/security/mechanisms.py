"""The SASL mechanisms of a listener, from its options and the metadata log."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.listener_security import PLAIN, MechanismOptions, mechanisms_of
from broker.security.authentication import SaslMechanism
from broker.security.delegation_tokens import token_lookup
from broker.security.oauth import tokens
from broker.workers import Workers
from coordinator.cluster.image import Image
from coordinator.cluster.scram import MECHANISMS
from protocol.config import ConfigError
from protocol.metadata_records.security import UserScramCredentialRecord
from protocol.sasl.absent_users import ChallengeShape, absent_user, shape_of
from protocol.sasl.exchange import ServerExchange
from protocol.sasl.plain import PlainServer
from protocol.sasl.scram import Credential, ScramServer, TokenLookup, base36, no_token

if TYPE_CHECKING:
    from broker.config.kerberos import TicketOptions

NONCE_BYTES = 20
RECOUNT_MS = 10_000
"""Minimum interval of counting all users: requests for unknown users can't cause more."""

Shapes: TypeAlias = Counter[ChallengeShape]

GSSAPI_NEEDED: Final = (
    "sasl.enabled.mechanisms: GSSAPI needs python-gssapi and a library of Kerberos (libgssapi-krb5-2; to build it "
    "libkrb5-dev): pip install 'odradek[gssapi]' ({})"
)


class Surroundings(NamedTuple):
    """The objects that mechanisms need besides their options."""

    image: Image
    clock: Clock
    draw: Callable[[int], bytes]
    """Returns random bytes."""
    cluster_secret: str | None
    """The secret from which the keys of delegation tokens are made; None if there are none."""
    process_secret: bytes
    """The secret of this process, the same for all its listeners."""
    closing: ExitStack
    """Closed with the listener."""


def mechanisms(config: BrokerConfig, listener: str, around: Surroundings) -> dict[str, SaslMechanism]:
    """Returns the mechanisms of a listener, by name. Raises ConfigError."""
    return {
        mechanism.name: _with_tickets(mechanism, mechanism.tickets, around)
        if mechanism.tickets is not None
        else SaslMechanism(_beginner(mechanism, listener, around), mechanism.max_reauth_ms)
        for mechanism in mechanisms_of(config, listener)
    }


def _with_tickets(mechanism: MechanismOptions, options: TicketOptions, around: Surroundings) -> SaslMechanism:
    try:
        from broker.security import kerberos_tickets as tickets
    except ImportError as error:
        raise ConfigError(GSSAPI_NEEDED.format(error), name="sasl.enabled.mechanisms") from error
    workers = Workers(1, "gssapi")
    around.closing.callback(workers.abandon)
    return SaslMechanism(tickets.acceptor(options, around.clock), mechanism.max_reauth_ms, workers.call)


def _beginner(mechanism: MechanismOptions, listener: str, around: Surroundings) -> Callable[[], ServerExchange]:
    if mechanism.login is not None and mechanism.name == PLAIN:
        return partial(PlainServer, mechanism.login.users)
    if mechanism.tokens is not None:
        return tokens.beginner(mechanism.tokens, listener, around.clock, around.closing)
    find = partial(scram_credential, around.image, MECHANISMS[mechanism.name].code)
    shapes, secret = ShapesInUse(around.image, mechanism.name, around.clock), _secret(around)
    find_token: TokenLookup = no_token
    if around.cluster_secret is not None:
        find_token = token_lookup(around.image, around.cluster_secret, mechanism.name, around.clock.now_ms)

    def absent(name: str) -> Credential:
        return absent_user(secret, mechanism.name, name, shapes.counted())

    def begin() -> ServerExchange:
        nonce = base36(int.from_bytes(around.draw(NONCE_BYTES)))
        return ScramServer(mechanism.name, find, absent, nonce, find_token)

    return begin


def _secret(around: Surroundings) -> bytes:
    """Returns the secret for the salts of unknown users: the cluster's, which is the same on each broker and after each
    start; this process's if the cluster has none.

    If two listeners answered with different salts, a client could tell that the user doesn't exist.
    """
    if around.cluster_secret is None:
        return around.process_secret
    return hmac.digest(around.cluster_secret.encode(), b"salts of users that do not exist", "sha256")


class ShapesInUse:
    """The shapes of the challenges of a mechanism's users, counted at intervals."""

    def __init__(self, image: Image, mechanism: str, clock: Clock) -> None:
        self._image = image
        self._code = MECHANISMS[mechanism].code
        self._clock = clock
        self._counted: Shapes = Counter()
        self._counted_ms: int | None = None

    def counted(self) -> Shapes:
        """Returns the number of users with each shape."""
        now_ms = self._clock.monotonic_ms()
        if self._counted_ms is None or now_ms - self._counted_ms >= RECOUNT_MS:
            self._counted_ms = now_ms
            self._counted = Counter(
                shape_of(_credential(record))
                for record in self._image.scram_credentials
                if record.mechanism == self._code
            )
        return self._counted


def scram_credential(image: Image, mechanism: int, user: str) -> Credential | None:
    """Returns a user's keys for a mechanism, from the metadata log."""
    record = image.scram_credentials.find(user, mechanism)
    return None if record is None else _credential(record)


def _credential(record: UserScramCredentialRecord) -> Credential:
    return Credential(record.salt, record.stored_key, record.server_key, record.iterations)
