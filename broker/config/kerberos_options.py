"""Options of GSSAPI: who clients of Kerberos are (org.apache.kafka.common.config.SaslConfigs)."""

from __future__ import annotations

from protocol.config import LIST, PER_BROKER, STRING, Config, option


class KerberosOptions(Config):
    """Tickets of Kerberos."""

    sasl_kerberos_service_name = option(
        "sasl.kerberos.service.name",
        STRING,
        None,
        update=PER_BROKER,
        doc="The service that this broker is to clients of Kerberos, as they name it; the login module may say it "
        "instead (serviceName). GSSAPI asks for it, as Kafka does; whose tickets are taken is the login module's "
        "principal.",
    )
    sasl_kerberos_principal_to_local_rules = option(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        update=PER_BROKER,
        doc="Rules that make a user's name of a Kerberos principal, the first that matches: "
        "`RULE:[n:format](match)s/from/to/g`, with /L or /U for lower or upper case, or DEFAULT, the first part of a "
        "principal of the default realm of krb5.conf.",
    )
