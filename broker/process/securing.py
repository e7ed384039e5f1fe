"""Has the clients of a listener authenticate by SASL, as its options say. Imported where there is such a listener."""

from __future__ import annotations

import os
from typing import NamedTuple

from broker.clock import Clock
from broker.config.listeners import ListenerAddress
from broker.exchange.context import ClientConnection
from broker.network.connection_lines import ConnectionLines
from broker.network.strangers import Stranger, Strangers
from broker.requests.dispatch import Dispatcher
from broker.security.authentication import Authentication
from broker.security.gate import AnswerFrame, SaslGate
from broker.security.mechanisms import mechanisms


class Secured(NamedTuple):
    """Who answers on a listener, and where its connections are until they have authenticated."""

    answer: AnswerFrame
    strangers: Strangers


def secure(address: ListenerAddress, dispatcher: Dispatcher, clock: Clock, lines: ConnectionLines) -> Secured:
    """Returns how a listener is answered. Raises ConfigError."""
    host = dispatcher.host
    own = host.config.options_of(address.name)
    offered = mechanisms(host.config, address.name, host.image, os.urandom)
    delay_ms = own.connection_failed_authentication_delay_ms

    def begin(connection: Stranger) -> None:
        assert isinstance(connection, ClientConnection)
        connection.authentication = Authentication(connection, offered, delay_ms, clock)

    strangers = Strangers(
        clock,
        lines,
        begin,
        timeout_ms=own.odradek_authentication_timeout_ms,
        most=own.odradek_unauthenticated_connections_max,
        max_request_bytes=min(own.sasl_server_max_receive_size, host.config.socket_request_max_bytes),
    )
    return Secured(SaslGate(dispatcher.answer).answer, strangers)
