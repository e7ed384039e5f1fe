"""TLS and SASL: options of the broker, each of which listener.name.<listener>.<option> sets for one listener."""

from __future__ import annotations

from typing import Final

from protocol.config import CLASS, INT, LIST, LONG, PASSWORD, PER_BROKER, STRING, Config, option

DEFAULT_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class SaslOptions(Config):
    """Authentication by SASL."""

    sasl_enabled_mechanisms = option(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        update=PER_BROKER,
        doc="SASL mechanisms by which clients may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
    )
    sasl_jaas_config = option(
        "sasl.jaas.config",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Login module of a mechanism, with its options, as listener.name.<listener>.<mechanism>.sasl.jaas.config: "
        "of PLAIN the users that may log in, and the name by which this broker does.",
    )
    sasl_mechanism_inter_broker_protocol = option(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        update=PER_BROKER,
        doc="SASL mechanism by which this broker authenticates to others.",
    )
    sasl_mechanism_controller_protocol = option(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        importance="high",
        doc="SASL mechanism by which this broker authenticates to controllers.",
    )
    sasl_server_max_receive_size = option(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        doc="Largest request of a client that has not authenticated.",
    )
    connections_max_reauth_ms = option(
        "connections.max.reauth.ms",
        LONG,
        0,
        doc="How long a client may go on that has authenticated by SASL, unless it does so anew (KIP-368); 0 is no "
        "limit.",
    )
    connection_failed_authentication_delay_ms = option(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        at_least=0,
        importance="low",
        doc="How long a client that failed to authenticate waits to be told so, and to be disconnected.",
    )
    odradek_authentication_timeout_ms = option(
        "odradek.authentication.timeout.ms",
        INT,
        30_000,
        at_least=100,
        doc="How long a connection may take from its first byte to having authenticated, its TLS handshake included; "
        "then it is closed. Without it a byte now and then would keep it open for ever.",
    )
    odradek_unauthenticated_connections_max = option(
        "odradek.unauthenticated.connections.max",
        INT,
        1_000,
        at_least=1,
        doc="Most connections of a listener that have not authenticated yet. One more cuts off, of the address that "
        "has most of them, the one that has waited longest.",
    )


class SecurityOptions(SaslOptions):
    """Who clients are, and what is kept from others on the way."""

    principal_builder_class = option(
        "principal.builder.class",
        CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        update=PER_BROKER,
        doc="What makes principals; classes of Java are not loaded, so only the default.",
    )


class ListenerOptions(SecurityOptions):
    """The options of one listener: its own over the broker's."""

    KIND = "listener"
