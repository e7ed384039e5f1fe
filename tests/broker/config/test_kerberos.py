"""Tests the options of a listener that accepts Kerberos tickets."""

from __future__ import annotations

import pytest

from broker.config import BrokerConfig
from broker.config.kerberos import KERBEROS_MODULE, TicketOptions
from broker.config.listener_security import mechanisms_of
from protocol.config import ConfigError

JAAS = "listener.name.sasl_ssl.gssapi.sasl.jaas.config"
KEYTAB = 'useKeyTab=true storeKey=true keyTab="/etc/kafka.keytab" principal="kafka/host@REALM"'


def given(**options: str) -> dict[str, str]:
    """Returns a listener as in Apache Kafka's documentation; options by attribute names, the JAAS line as `jaas`."""
    jaas = options.pop("jaas", f"{KERBEROS_MODULE} required {KEYTAB};")
    return {
        "listeners": "SASL_SSL://:1",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        **({JAAS: jaas} if jaas else {}),
        **{name.replace("_", "."): value for name, value in options.items()},
    }


def tickets(options: dict[str, str]) -> TicketOptions | None:
    (mechanism,) = mechanisms_of(BrokerConfig.parse(options), "SASL_SSL")
    return mechanism.tickets


def test_a_listener_takes_tickets_as_kafka_s_documentation_has_it() -> None:
    expected = TicketOptions("kafka/host@REALM", "/etc/kafka.keytab", ("DEFAULT",), False, JAAS)
    assert tickets(given()) == expected
    jaas = f'{KERBEROS_MODULE} required {KEYTAB.replace("/etc", "FILE:/etc")} serviceName="kafka";'
    assert tickets(given(jaas=jaas)) == expected


def test_a_session_ends_with_its_ticket_where_sessions_end() -> None:
    options = tickets(given(connections_max_reauth_ms="1000"))
    assert options is not None
    assert options.session_ends_with_ticket


def test_a_listener_has_rules_of_its_own() -> None:
    own = {"listener.name.sasl_ssl.sasl.kerberos.principal.to.local.rules": "RULE:[1:$1]/L, DEFAULT"}
    options = tickets({**given(sasl_kerberos_principal_to_local_rules="RULE:[2:$1]"), **own})
    assert options is not None
    assert options.rules == ("RULE:[1:$1]/L", "DEFAULT")


@pytest.mark.parametrize(("options", "problem"), [
    ({"jaas": ""}, "GSSAPI, the default of sasl.enabled.mechanisms, needs a login module: com.sun"),
    ({"jaas": "M required;"}, "the login module is M; GSSAPI supports only com.sun.security.auth.module.Krb5"),
    ({"jaas": f'{KERBEROS_MODULE} required principal="kafka/host@REALM";'}, "keyTab is missing"),
    ({"jaas": f'{KERBEROS_MODULE} required keyTab="/k";'}, "principal is missing"),
    ({"jaas": f'{KERBEROS_MODULE} required {KEYTAB} serviceName="other";'}, "Conflicting serviceName values found"),
    ({"sasl_server_callback_handler_class": "my.Handler"}, "my.Handler of GSSAPI: Java classes are not loaded"),
])  # fmt: skip
def test_what_is_missing_stops_the_start(options: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        BrokerConfig.parse(given(**options))


def test_a_service_has_a_name() -> None:
    options = given()
    del options["sasl.kerberos.service.name"]
    with pytest.raises(ConfigError, match="No serviceName defined in either JAAS or Kafka config"):
        BrokerConfig.parse(options)


def test_this_node_does_not_log_in_to_others_by_tickets() -> None:
    """The options are those of an Apache Kafka broker that logs in by Kerberos."""
    names = {"listeners": "SASL_SSL://:1", "controller.listener.names": "C", "process.roles": "broker"}
    quorum = {
        "controller.quorum.bootstrap.servers": "a:1",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,C:PLAINTEXT",
    }
    with pytest.raises(ConfigError, match="listener SASL_SSL uses GSSAPI, but this node can authenticate to"):
        BrokerConfig.parse({**given(inter_broker_listener_name="SASL_SSL"), **names, **quorum})
