"""TLS and SASL: options of the broker, each of which listener.name.<listener>.<option> sets for one listener."""

from __future__ import annotations

from typing import Final

from broker.config.kerberos_options import KerberosOptions
from broker.config.oauth_options import OAuthOptions
from protocol.config import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, PER_BROKER, STRING, Config, option

DEFAULT_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class SaslOptions(Config):
    """Options of SASL authentication."""

    sasl_enabled_mechanisms = option(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        update=PER_BROKER,
        doc="SASL mechanisms that clients may authenticate with: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, "
        "GSSAPI.",
    )
    sasl_jaas_config = option(
        "sasl.jaas.config",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Login module of a mechanism and its options, set as "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config. For PLAIN: the users that may log in, and the name "
        "and password with which this broker authenticates to others. For OAUTHBEARER: TLS to the issuer. For GSSAPI: "
        "this broker's principal and keytab.",
    )
    sasl_mechanism_inter_broker_protocol = option(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        update=PER_BROKER,
        doc="SASL mechanism with which this broker authenticates to other brokers: PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512.",
    )
    sasl_mechanism_controller_protocol = option(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        importance="high",
        doc="SASL mechanism with which this broker authenticates to controllers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
    )
    sasl_server_max_receive_size = option(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        doc="Largest request of an unauthenticated client.",
    )
    connections_max_reauth_ms = option(
        "connections.max.reauth.ms",
        LONG,
        0,
        doc="Time after which a client that authenticated by SASL must authenticate again (KIP-368); 0 is no limit.",
    )
    connection_failed_authentication_delay_ms = option(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        at_least=0,
        importance="low",
        doc="Delay before a client whose authentication failed gets the error and is disconnected.",
    )
    odradek_authentication_timeout_ms = option(
        "odradek.authentication.timeout.ms",
        INT,
        30_000,
        at_least=100,
        doc="Time from a connection's first byte within which it must have authenticated, its TLS handshake included; "
        "then it is closed. Without this limit, a client that sends a byte now and then would keep its connection "
        "open for ever.",
    )
    odradek_unauthenticated_connections_max = option(
        "odradek.unauthenticated.connections.max",
        INT,
        1_000,
        at_least=1,
        doc="Maximum number of unauthenticated connections of a listener. For one more, the broker closes a "
        "connection: from the address that has most of them, the connection that has waited longest.",
    )


class TlsOptions(Config):
    """Options of encryption, and of authentication by certificates."""

    ssl_client_auth = option(
        "ssl.client.auth",
        STRING,
        "none",
        one_of=("required", "requested", "none"),
        update=PER_BROKER,
        doc="Whether clients must present a certificate (required), may present one (requested), or are not asked for "
        "one (none).",
    )
    ssl_enabled_protocols = option(
        "ssl.enabled.protocols",
        LIST,
        ("TLSv1.2", "TLSv1.3"),
        update=PER_BROKER,
        doc="Versions of TLS: TLSv1.2 and TLSv1.3.",
    )
    ssl_cipher_suites = option(
        "ssl.cipher.suites",
        LIST,
        (),
        update=PER_BROKER,
        doc="Cipher suites, by their names in Java; empty enables all that OpenSSL considers safe. The suites of TLS "
        "1.3 are always enabled.",
    )
    ssl_keystore_type = option(
        "ssl.keystore.type",
        STRING,
        "JKS",
        update=PER_BROKER,
        doc="Format of the key store: PEM or PKCS12. JKS is read as PKCS12, as Java does; the old JKS format is not "
        "supported.",
    )
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        None,
        update=PER_BROKER,
        doc="File of the key store: a private key and its certificate chain. Other users of the machine must not be "
        "able to read it.",
    )
    ssl_keystore_password = option(
        "ssl.keystore.password", PASSWORD, None, update=PER_BROKER, doc="Password of the key store in PKCS12."
    )
    ssl_key_password = option(
        "ssl.key.password", PASSWORD, None, update=PER_BROKER, doc="Password of the private key in PEM."
    )
    ssl_keystore_key = option(
        "ssl.keystore.key",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc=("Private key, as PEM text in the option itself (KIP-651)."),
    )
    ssl_keystore_certificate_chain = option(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Certificate chain of that private key, as PEM text in the option itself.",
    )
    ssl_truststore_type = option(
        "ssl.truststore.type",
        STRING,
        "JKS",
        update=PER_BROKER,
        doc="Format of the trust store: PEM or PKCS12. JKS is read as PKCS12.",
    )
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        None,
        update=PER_BROKER,
        doc="File of the trust store: certificates of the authorities that sign the certificates of clients and "
        "brokers.",
    )
    ssl_truststore_password = option(
        "ssl.truststore.password", PASSWORD, None, update=PER_BROKER, doc="Password of the trust store in PKCS12."
    )
    ssl_truststore_certificates = option(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Certificates of the authorities, as PEM text in the option itself (KIP-651).",
    )
    ssl_endpoint_identification_algorithm = option(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        importance="low",
        update=PER_BROKER,
        doc="https makes this broker verify that another node's certificate names the host that it connected to; "
        "empty disables the check.",
    )
    ssl_allow_dn_changes = option(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        importance="low",
        doc="Allow a new key store whose certificate has another subject.",
    )
    ssl_allow_san_changes = option(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        importance="low",
        doc="Allow a new key store whose certificate lacks a name that the previous certificate has.",
    )
    ssl_principal_mapping_rules = option(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        importance="low",
        doc="Rules that map the subject of a client's certificate to a principal name; the first that matches "
        "applies: RULE:pattern/replacement/ with L or U for lower or upper case, or DEFAULT, which is the subject "
        "itself.",
    )


class SecurityOptions(SaslOptions, OAuthOptions, KerberosOptions, TlsOptions):
    """Options of security: SASL, TLS, and the principals of clients."""

    principal_builder_class = option(
        "principal.builder.class",
        CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        update=PER_BROKER,
        doc="Class that builds principals. Java classes are not loaded, so only the default is supported.",
    )


class ListenerOptions(SecurityOptions):
    """The options of one listener: its own, and the broker's for the rest."""

    KIND = "listener"
