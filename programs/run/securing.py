"""Sets up TLS and authentication of a listener. Imported only if a listener uses them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.listeners import ListenerAddress, is_sasl, is_tls
from broker.config.security import ListenerOptions
from broker.exchange.context import ANONYMOUS, ClientConnection, Principal
from broker.logging import get_logger
from broker.network.connection import ServerConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.strangers import Stranger, Strangers
from broker.requests.answering import FrameAnswerer
from broker.security.authentication import Authentication
from broker.security.gate import AnswerFrame, SaslGate
from broker.security.mechanisms import Surroundings, mechanisms
from protocol.config import ConfigError
from protocol.errors import ProtocolError

if TYPE_CHECKING:
    from broker.network.tls import Secured, TlsTransport

logger = get_logger("broker.process.securing")


class Doors(NamedTuple):
    """A listener's answering function, its unauthenticated connections, and its TLS."""

    answer: AnswerFrame
    strangers: Strangers
    tls: TlsDoor | None


class TlsDoor:
    """The TLS of a listener; a new connection gets the current certificates."""

    def __init__(self, config: Callable[[], BrokerConfig], listener: str, *, names: bool) -> None:
        """`config` returns the configuration in force. With `names` the certificate determines the client's principal.
        Raises ConfigError."""
        from broker.network.tls import READ_BYTES
        from broker.security.certificates import server_context
        from broker.security.principal_rules import PrincipalRules
        from broker.security.store_changes import certificate_of

        self._config = config
        self._listener = listener
        self._names = names
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._in_force = config()
        options = self._in_force.options_of(listener)
        self._make: Callable[[ListenerOptions], ssl.SSLContext] = server_context
        self._rules = PrincipalRules(options.ssl_principal_mapping_rules)
        self._context, self._certificate = server_context(options), certificate_of(options)

    def accepted(self, make: Callable[[], Secured]) -> TlsTransport:
        """Returns the transport of a new connection; `make` makes the protocol above TLS."""
        from broker.network.tls import TlsTransport

        self._renew()
        return TlsTransport(self._context, self._buffer, make, self._ready, refuse)

    def _renew(self) -> None:
        """Reloads key and certificates after any option has changed, because the same file may have new content. If the
        new ones are invalid or have other names, logs the error and keeps the old ones."""
        config = self._config()
        if config is self._in_force:
            return
        self._in_force = config
        from broker.security.store_changes import certificate_of, check_names

        options = config.options_of(self._listener)
        try:
            context, certificate = self._make(options), certificate_of(options)
            check_names(self._certificate, certificate, options)
            self._context, self._certificate = context, certificate
        except ConfigError as error:
            logger.error("the certificates of a listener were not reloaded", listener=self._listener, reason=str(error))

    def _ready(self, connection: Secured, certificate: bytes | None) -> None:
        """Authenticates a client by its certificate after the TLS handshake, unless SASL follows. Raises
        ProtocolError."""
        if self._names:
            assert isinstance(connection, ClientConnection)
            connection.authenticated(self.principal(certificate))

    def principal(self, certificate: bytes | None) -> Principal:
        """Returns the principal of a certificate. Raises ProtocolError if no rule matches its subject."""
        if certificate is None:
            return ANONYMOUS
        from protocol.distinguished_name import subject

        try:
            name = subject(certificate)
        except ValueError as error:
            raise ProtocolError(str(error), offset=0) from error
        principal = self._rules.name(name)
        if principal is None:
            raise ProtocolError(f"no rule of ssl.principal.mapping.rules matches the subject {name!r}", offset=0)
        return Principal("User", principal)


def refuse(connection: Secured, reason: str) -> None:
    """Closes a connection whose handshake failed."""
    assert isinstance(connection, ServerConnection)
    assert connection.listener.strangers is not None, "each listener with TLS has unauthenticated connections"
    connection.listener.strangers.dismiss(connection, reason)


def secure(
    address: ListenerAddress, dispatcher: FrameAnswerer, clock: Clock, lines: ConnectionLines, closing: ExitStack
) -> Doors:
    """Returns the parts that secure a listener until `closing` is closed. Raises ConfigError."""
    host = dispatcher.host
    own, max_request_bytes = host.config.options_of(address.name), host.config.socket_request_max_bytes
    answer: AnswerFrame = dispatcher.answer
    begin: Callable[[Stranger], None] = _begin_nothing
    if is_sasl(address):
        answer = SaslGate(dispatcher.answer).answer
        begin = _beginner(address, dispatcher, own.connection_failed_authentication_delay_ms, clock, closing)
        max_request_bytes = min(own.sasl_server_max_receive_size, max_request_bytes)
    strangers = Strangers(
        clock,
        lines,
        begin,
        timeout_ms=own.odradek_authentication_timeout_ms,
        most=own.odradek_unauthenticated_connections_max,
        max_request_bytes=max_request_bytes,
    )
    tls = TlsDoor(lambda: host.config, address.name, names=not is_sasl(address)) if is_tls(address) else None
    return Doors(answer, strangers, tls)


def _begin_nothing(_: Stranger) -> None:
    """Does nothing, because TLS starts by itself."""


def _beginner(
    address: ListenerAddress, dispatcher: FrameAnswerer, delay_ms: int, clock: Clock, closing: ExitStack
) -> Callable[[Stranger], None]:
    """Returns the function that starts SASL authentication of a connection. Raises ConfigError."""
    host = dispatcher.host
    cluster_secret = host.config.delegation_token_secret_key or None  # an empty secret is no secret
    around = Surroundings(host.image, clock, os.urandom, cluster_secret, host.process_secret, closing)
    offered = mechanisms(host.config, address.name, around)

    def begin(connection: Stranger) -> None:
        assert isinstance(connection, ClientConnection)
        connection.authentication = Authentication(connection, offered, delay_ms, clock)

    return begin
