"""Reads from a listener's options how it authenticates Kerberos clients.

Source: org.apache.kafka.common.security.kerberos.KerberosLogin, also for the texts of errors; the options of
com.sun.security.auth.module.Krb5LoginModule.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.config.jaas import LoginModule
from broker.config.security import ListenerOptions
from protocol.config import ConfigError

KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE: Final = "sasl.kerberos.service.name"
EXAMPLE: Final = f'{KERBEROS_MODULE} required useKeyTab=true storeKey=true keyTab="…" principal="kafka/HOST@REALM";'


class TicketOptions(NamedTuple):
    """This broker's principal, its keytab, and the rules that map client principals to user names."""

    principal: str
    keytab: str
    rules: tuple[str, ...]
    session_ends_with_ticket: bool
    jaas_option: str
    """The option with the principal and the keytab, for error messages."""


def ticket_options(jaas_option: str, own: ListenerOptions, module: LoginModule | None) -> TicketOptions:
    """Returns a listener's Kerberos options; `module` is the login module in the option `jaas_option`.

    Raises ConfigError.
    """
    if module is None:
        problem = f"GSSAPI, the default of sasl.enabled.mechanisms, needs a login module: {EXAMPLE}"
        raise ConfigError(f"{jaas_option}: {problem}", name=jaas_option)
    if module.name != KERBEROS_MODULE:
        problem = f"the login module is {module.name}; GSSAPI supports only {KERBEROS_MODULE}"
        raise ConfigError(f"{jaas_option}: {problem}", name=jaas_option)
    keytab, principal = module.options.get("keyTab", ""), module.options.get("principal", "")
    for option, value in (("keyTab", keytab), ("principal", principal)):
        if not value:
            raise ConfigError(f"{jaas_option}: {option} is missing: {EXAMPLE}", name=jaas_option)
    _check_service(module.options.get("serviceName"), own.sasl_kerberos_service_name)
    return TicketOptions(
        principal=principal,
        keytab=keytab.removeprefix("FILE:"),
        rules=own.sasl_kerberos_principal_to_local_rules,
        session_ends_with_ticket=own.connections_max_reauth_ms > 0,
        jaas_option=jaas_option,
    )


def _check_service(of_module: str | None, of_options: str | None) -> None:
    """Raises ConfigError if the service name is missing, or if two different names are configured."""
    if of_module is None and of_options is None:
        raise ConfigError(f"{SERVICE}: No serviceName defined in either JAAS or Kafka config", name=SERVICE)
    if of_module is not None and of_options is not None and of_module != of_options:
        problem = (
            f"Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_module}, "
            f"value in Kafka config {of_options}"
        )
        raise ConfigError(f"{SERVICE}: {problem}", name=SERVICE)
