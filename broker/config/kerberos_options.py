"""Options of GSSAPI, which authenticates clients by Kerberos (org.apache.kafka.common.config.SaslConfigs)."""

from __future__ import annotations

from protocol.config import LIST, PER_BROKER, STRING, Config, option


class KerberosOptions(Config):
    """Options of Kerberos."""

    sasl_kerberos_service_name = option(
        STRING,
        None,
        "Service name of this broker's Kerberos principal. The login module's serviceName can set it instead. "
        "GSSAPI requires one of them, as in Kafka; clients' tickets must be for the login module's principal.",
        update=PER_BROKER,
    )
    sasl_kerberos_principal_to_local_rules = option(
        LIST,
        ("DEFAULT",),
        "Rules that map a Kerberos principal to a user name; the first that matches applies: "
        "`RULE:[n:format](match)s/from/to/g`, with /L or /U for lower or upper case, or DEFAULT, which takes the "
        "first part of a principal in the default realm of krb5.conf.",
        update=PER_BROKER,
    )
