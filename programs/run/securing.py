"""Sets up TLS and authentication of a listener. Imported only if a listener uses them."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from broker.clock import Clock
from broker.config.listeners import ListenerAddress, is_sasl, is_tls
from broker.config.live import LiveConfig
from broker.config.security import ListenerOptions
from broker.dispatch.answering import FrameAnswerer
from broker.logging import get_logger
from broker.metadata.file_reads import FileReads
from broker.network.connection import ServerConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.connection_view import ConnectionView
from broker.network.tls import READ_BYTES, TlsTransport
from broker.network.unauthenticated import UnauthenticatedConnections
from broker.request.context import ANONYMOUS, Principal
from broker.security.authentication import Authentication
from broker.security.certificates import server_context
from broker.security.gate import AnswerFrame, SaslGate
from broker.security.mechanisms import Surroundings, mechanisms
from broker.security.principal_rules import PrincipalRules
from broker.security.store_changes import certificate_of, check_names
from protocol.config import ConfigError
from protocol.distinguished_name import subject
from protocol.errors import KafkaError, ProtocolError

logger = get_logger(__name__)


class Doors(NamedTuple):
    """A listener's answering function, its unauthenticated connections, and its TLS."""

    answer: AnswerFrame
    unauthenticated: UnauthenticatedConnections
    tls: TlsDoor | None


class Certificates(NamedTuple):
    """The certificate of a listener, and the authorities that it trusts, loaded from its stores."""

    context: ssl.SSLContext
    own: bytes | None
    """The listener's certificate in DER."""


def load(options: ListenerOptions) -> Certificates:
    """Returns the certificates of a listener. Reads files. Raises ConfigError."""
    return Certificates(server_context(options), certificate_of(options))


class TlsDoor:
    """The TLS of a listener; a new connection gets the current certificates."""

    def __init__(self, live_config: LiveConfig, listener: str, clock: Clock, *, names: bool) -> None:
        """With `names` the certificate determines the client's principal. Raises ConfigError."""
        self._live_config = live_config
        self._listener = listener
        self._names = names
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._in_force = live_config.effective
        options = self._in_force.options_of(listener)
        self._rules = PrincipalRules(options.ssl_principal_mapping_rules)
        self._certificates = load(options)
        self._file_reads = FileReads(clock)
        self.renewal: asyncio.Task[None] | None = None
        """The reload in progress; None if the certificates match the current options."""
        live_config.subscribe(self._changed)

    def accepted(self, make: Callable[[], ConnectionView]) -> TlsTransport:
        """Returns the transport of a new connection; `make` makes the protocol above TLS."""
        return TlsTransport(self._certificates.context, self._buffer, make, self._ready, refuse)

    def _changed(self) -> None:
        if self.renewal is None:
            self.renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        """Reloads key and certificates after any option has changed, because the same file may have new content. A
        thread reads them. If the new ones are invalid or have other names, logs the error and keeps the old ones."""
        try:
            while (config := self._live_config.effective) is not self._in_force:
                self._in_force = config
                options = config.options_of(self._listener)
                try:
                    renewed = await self._file_reads.call(partial(load, options))
                    check_names(self._certificates.own, renewed.own, options)
                    self._certificates = renewed
                except (ConfigError, KafkaError) as error:
                    reason = str(error)
                    logger.error(
                        "the certificates of a listener were not reloaded", listener=self._listener, reason=reason
                    )
        finally:
            self.renewal = None

    def close(self) -> None:
        """Cancels a reload of certificates in progress."""
        if self.renewal is not None:
            self.renewal.cancel()

    def _ready(self, connection: ConnectionView, certificate: bytes | None) -> None:
        """Authenticates a client by its certificate after the TLS handshake, unless SASL follows. Raises
        ProtocolError."""
        if self._names:
            assert isinstance(connection, ServerConnection)
            connection.authenticated(self.principal(certificate))

    def principal(self, certificate: bytes | None) -> Principal:
        """Returns the principal of a certificate. Raises ProtocolError if no rule matches its subject."""
        if certificate is None:
            return ANONYMOUS
        try:
            name = subject(certificate)
        except ValueError as error:
            raise ProtocolError(str(error), offset=0) from error
        principal = self._rules.name(name)
        if principal is None:
            raise ProtocolError(f"no rule of ssl.principal.mapping.rules matches the subject {name!r}", offset=0)
        return Principal("User", principal)


def refuse(connection: ConnectionView, reason: str) -> None:
    """Closes a connection whose handshake failed."""
    assert isinstance(connection, ServerConnection)
    assert connection.listener.unauthenticated is not None, "each listener with TLS has unauthenticated connections"
    connection.listener.unauthenticated.linger(connection, reason)


def secure(
    address: ListenerAddress, dispatcher: FrameAnswerer, clock: Clock, lines: ConnectionLines, closing: ExitStack
) -> Doors:
    """Returns the parts that secure a listener until `closing` is closed. Raises ConfigError."""
    host = dispatcher.host
    own, max_request_bytes = host.config.options_of(address.name), host.config.socket_request_max_bytes
    answer: AnswerFrame = dispatcher.answer
    begin: Callable[[ConnectionView], None] = _begin_nothing
    if is_sasl(address):
        answer = SaslGate(dispatcher.answer).answer
        begin = _beginner(address, dispatcher, own.connection_failed_authentication_delay_ms, clock, closing)
        max_request_bytes = min(own.sasl_server_max_receive_size, max_request_bytes)
    unauthenticated = UnauthenticatedConnections(
        clock,
        lines,
        begin,
        timeout_ms=own.odradek_authentication_timeout_ms,
        most=own.odradek_unauthenticated_connections_max,
        max_request_bytes=max_request_bytes,
    )
    tls = TlsDoor(host.live_config, address.name, clock, names=not is_sasl(address)) if is_tls(address) else None
    if tls is not None:
        closing.callback(tls.close)
    return Doors(answer, unauthenticated, tls)


def _begin_nothing(_: ConnectionView) -> None:
    """Does nothing, because TLS starts by itself."""


def _beginner(
    address: ListenerAddress, dispatcher: FrameAnswerer, delay_ms: int, clock: Clock, closing: ExitStack
) -> Callable[[ConnectionView], None]:
    """Returns the function that starts SASL authentication of a connection. Raises ConfigError."""
    host = dispatcher.host
    cluster_secret = host.config.delegation_token_secret_key or None  # an empty secret is no secret
    around = Surroundings(host.image, clock, os.urandom, cluster_secret, host.process_secret, closing)
    offered = mechanisms(host.config, address.name, around)

    def begin(connection: ConnectionView) -> None:
        assert isinstance(connection, ServerConnection)
        connection.authentication = Authentication(connection, offered, delay_ms, clock)

    return begin
