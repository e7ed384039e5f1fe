"""TLS and SASL: options of the broker, each of which listener.name.<listener>.<option> sets for one listener."""

from __future__ import annotations

from typing import Final

from broker.config.kerberos_options import KerberosOptions
from broker.config.oauth_options import OAuthOptions
from protocol.config import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, PER_BROKER, STRING, Config, option

DEFAULT_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class SaslOptions(Config):
    """Authentication by SASL."""

    sasl_enabled_mechanisms = option(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        update=PER_BROKER,
        doc="SASL mechanisms by which clients may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, "
        "GSSAPI.",
    )
    sasl_jaas_config = option(
        "sasl.jaas.config",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Login module of a mechanism, with its options, as listener.name.<listener>.<mechanism>.sasl.jaas.config: "
        "of PLAIN the users that may log in, and the name by which this broker does; of OAUTHBEARER TLS to the issuer; "
        "of GSSAPI this broker's principal and keytab.",
    )
    sasl_mechanism_inter_broker_protocol = option(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        update=PER_BROKER,
        doc="SASL mechanism by which this broker authenticates to others: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
    )
    sasl_mechanism_controller_protocol = option(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        importance="high",
        doc="SASL mechanism by which this broker authenticates to controllers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
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


class TlsOptions(Config):
    """Encryption, and authentication by certificates."""

    ssl_client_auth = option(
        "ssl.client.auth",
        STRING,
        "none",
        one_of=("required", "requested", "none"),
        update=PER_BROKER,
        doc="Whether clients must show a certificate, may, or are not asked for one.",
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
        doc="Cipher suites by the names that Java gives them; empty is all that OpenSSL takes for safe. Those of TLS "
        "1.3 are always on.",
    )
    ssl_keystore_type = option(
        "ssl.keystore.type",
        STRING,
        "JKS",
        update=PER_BROKER,
        doc="Format of the key store: PEM or PKCS12. JKS means PKCS12 too, as to Java; Java's own format is not read.",
    )
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        None,
        update=PER_BROKER,
        doc="File of the key store, which nobody else may read: a private key and the chain of its certificates.",
    )
    ssl_keystore_password = option(
        "ssl.keystore.password", PASSWORD, None, update=PER_BROKER, doc="Password of the key store in PKCS12."
    )
    ssl_key_password = option(
        "ssl.key.password", PASSWORD, None, update=PER_BROKER, doc="Password of the private key in PEM."
    )
    ssl_keystore_key = option(
        "ssl.keystore.key", PASSWORD, None, update=PER_BROKER, doc="Private key, as PEM in the option itself (KIP-651)."
    )
    ssl_keystore_certificate_chain = option(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Certificates of that key, as PEM in the option itself.",
    )
    ssl_truststore_type = option(
        "ssl.truststore.type",
        STRING,
        "JKS",
        update=PER_BROKER,
        doc="Format of the trust store: PEM or PKCS12, by the name of JKS too.",
    )
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        None,
        update=PER_BROKER,
        doc="File of the trust store: certificates of the authorities that sign those of clients and brokers.",
    )
    ssl_truststore_password = option(
        "ssl.truststore.password", PASSWORD, None, update=PER_BROKER, doc="Password of the trust store in PKCS12."
    )
    ssl_truststore_certificates = option(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        update=PER_BROKER,
        doc="Those certificates, as PEM in the option itself (KIP-651).",
    )
    ssl_endpoint_identification_algorithm = option(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        importance="low",
        update=PER_BROKER,
        doc="https has this broker check that the certificate of another names the host that it connected to; empty "
        "checks no name.",
    )
    ssl_allow_dn_changes = option(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        importance="low",
        doc="Whether another key store may be set whose certificate has another subject.",
    )
    ssl_allow_san_changes = option(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        importance="low",
        doc="Whether another key store may be set whose certificate lacks a name that the one before it has.",
    )
    ssl_principal_mapping_rules = option(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        importance="low",
        doc="Rules that make a principal's name of the subject of a client's certificate, the first that matches: "
        "RULE:pattern/replacement/ with L or U for lower or upper case, or DEFAULT, the subject as it is.",
    )


class SecurityOptions(SaslOptions, OAuthOptions, KerberosOptions, TlsOptions):
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
