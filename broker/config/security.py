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
        LIST,
        ("GSSAPI",),
        "SASL mechanisms that clients may authenticate with: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI.",
        update=PER_BROKER,
    )
    sasl_jaas_config = option(
        PASSWORD,
        None,
        "Login module of a mechanism and its options, set as "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config. For PLAIN: the users that may log in, and the name "
        "and password with which this broker authenticates to others. For OAUTHBEARER: TLS to the issuer. For GSSAPI: "
        "this broker's principal and keytab.",
        update=PER_BROKER,
    )
    sasl_mechanism_inter_broker_protocol = option(
        STRING,
        "GSSAPI",
        "SASL mechanism with which this broker authenticates to other brokers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
        update=PER_BROKER,
    )
    sasl_mechanism_controller_protocol = option(
        STRING,
        "GSSAPI",
        "SASL mechanism with which this broker authenticates to controllers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
        importance="high",
    )
    sasl_server_max_receive_size = option(INT, 524_288, "Largest request of an unauthenticated client.")
    connections_max_reauth_ms = option(
        LONG,
        0,
        "Time after which a client that authenticated by SASL must authenticate again (KIP-368); 0 is no limit.",
    )
    connection_failed_authentication_delay_ms = option(
        INT,
        100,
        "Delay before a client whose authentication failed gets the error and is disconnected.",
        at_least=0,
        importance="low",
    )
    odradek_authentication_timeout_ms = option(
        INT,
        30_000,
        "Time from a connection's first byte within which it must have authenticated, its TLS handshake included; "
        "then it is closed. Without this limit, a client that sends a byte now and then would keep its connection "
        "open forever.",
        at_least=100,
    )
    odradek_unauthenticated_connections_max = option(
        INT,
        1_000,
        "Maximum number of unauthenticated connections of a listener. For one more, the broker closes a "
        "connection: from the address that has most of them, the connection that has waited longest.",
        at_least=1,
    )


class TlsOptions(Config):
    """Options of encryption, and of authentication by certificates."""

    ssl_client_auth = option(
        STRING,
        "none",
        "Whether clients must present a certificate (required), may present one (requested), or are not asked for "
        "one (none).",
        one_of=("required", "requested", "none"),
        update=PER_BROKER,
    )
    ssl_enabled_protocols = option(
        LIST, ("TLSv1.2", "TLSv1.3"), "Versions of TLS: TLSv1.2 and TLSv1.3.", update=PER_BROKER
    )
    ssl_cipher_suites = option(
        LIST,
        (),
        "Cipher suites, by their names in Java; empty enables all that OpenSSL considers safe. The suites of TLS "
        "1.3 are always enabled.",
        update=PER_BROKER,
    )
    ssl_keystore_type = option(
        STRING,
        "JKS",
        "Format of the key store: PEM or PKCS12. JKS is read as PKCS12, as Java does; the old JKS format is not "
        "supported.",
        update=PER_BROKER,
    )
    ssl_keystore_location = option(
        STRING,
        None,
        "File of the key store: a private key and its certificate chain. Other users of the machine must not be "
        "able to read it.",
        update=PER_BROKER,
    )
    ssl_keystore_password = option(PASSWORD, None, "Password of the key store in PKCS12.", update=PER_BROKER)
    ssl_key_password = option(PASSWORD, None, "Password of the private key in PEM.", update=PER_BROKER)
    ssl_keystore_key = option(
        PASSWORD, None, "Private key, as PEM text in the option itself (KIP-651).", update=PER_BROKER
    )
    ssl_keystore_certificate_chain = option(
        PASSWORD, None, "Certificate chain of that private key, as PEM text in the option itself.", update=PER_BROKER
    )
    ssl_truststore_type = option(
        STRING, "JKS", "Format of the trust store: PEM or PKCS12. JKS is read as PKCS12.", update=PER_BROKER
    )
    ssl_truststore_location = option(
        STRING,
        None,
        "File of the trust store: certificates of the authorities that sign the certificates of clients and brokers.",
        update=PER_BROKER,
    )
    ssl_truststore_password = option(PASSWORD, None, "Password of the trust store in PKCS12.", update=PER_BROKER)
    ssl_truststore_certificates = option(
        PASSWORD,
        None,
        "Certificates of the authorities, as PEM text in the option itself (KIP-651).",
        update=PER_BROKER,
    )
    ssl_endpoint_identification_algorithm = option(
        STRING,
        "https",
        "https makes this broker verify that another node's certificate names the host that it connected to; "
        "empty disables the check.",
        importance="low",
        update=PER_BROKER,
    )
    ssl_allow_dn_changes = option(
        BOOLEAN, False, "Allow a new key store whose certificate has another subject.", importance="low"
    )
    ssl_allow_san_changes = option(
        BOOLEAN,
        False,
        "Allow a new key store whose certificate lacks a name that the previous certificate has.",
        importance="low",
    )
    ssl_principal_mapping_rules = option(
        STRING,
        "DEFAULT",
        "Rules that map the subject of a client's certificate to a principal name; the first that matches "
        "applies: RULE:pattern/replacement/ with L or U for lower or upper case, or DEFAULT, which is the subject "
        "itself.",
        importance="low",
    )


class SecurityOptions(SaslOptions, OAuthOptions, KerberosOptions, TlsOptions):
    """Options of security: SASL, TLS, and the principals of clients."""

    principal_builder_class = option(
        CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        "Class that builds principals. Java classes are not loaded, so only the default is supported.",
        update=PER_BROKER,
    )


class ListenerOptions(SecurityOptions):
    """The options of one listener: its own, and the broker's for the rest."""

    KIND = "listener"
