"""Tests dynamic options of single listeners: of a listener that the broker doesn't have, and beside the broker's own
options."""

from __future__ import annotations

import pytest

from broker.config import BrokerConfig
from broker.config.alter import check_broker
from broker.config.describe import describe_broker
from broker.config.layers import Layers
from protocol.config import LONG, PASSWORD, UNKNOWN_TYPE, ConfigError

STATIC = {
    "listeners": "FIRST://127.0.0.1:9092,SECOND://127.0.0.1:9093",
    "listener.security.protocol.map": "FIRST:SSL,SECOND:SSL",
    "ssl.keystore.location": "/of/the/broker",
    "ssl.client.auth": "required",
}
ABSENT = "listener.name.internal."
LAYERS = Layers(BrokerConfig.parse(STATIC))


@pytest.mark.parametrize(("name", "value"), [
    ("ssl.keystore.location", "/nowhere/test.jks"),
    ("ssl.truststore.password", "secret"),
    ("ssl.client.auth", "none"),
    ("sasl.server.max.receive.size", "of a read-only option, which is not looked at"),
    ("plain.sasl.jaas.config", "x"),
    ("unknown", "x"),
])  # fmt: skip
def test_an_option_of_a_listener_that_is_absent_is_accepted_without_effect(name: str, value: str) -> None:
    after = check_broker(LAYERS, {ABSENT + name: value}, per_broker=True)
    assert after.problems == ()
    assert after.effective.explicit == STATIC
    for listener in ("FIRST", "SECOND"):
        assert after.effective.options_of(listener) == LAYERS.effective.options_of(listener)


def test_other_options_have_an_effect_beside_those_of_a_listener_that_is_absent() -> None:
    after = check_broker(LAYERS, {f"{ABSENT}ssl.client.auth": "none", "log.cleaner.threads": "2"}, per_broker=True)
    assert after.effective.log_cleaner_threads == 2


def test_the_type_of_a_dynamic_option_is_checked_for_any_listener() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value often for configuration max\.connections"):
        check_broker(LAYERS, {f"{ABSENT}max.connections": "often"}, per_broker=True)


def test_only_limits_of_connections_and_threads_of_a_listener_may_be_set_for_all_brokers() -> None:
    for name in ("max.connections", "max.connection.creation.rate", "num.network.threads"):
        check_broker(LAYERS, {ABSENT + name: "4"}, per_broker=False)
    for name in ("ssl.keystore.location", "unknown"):
        with pytest.raises(ConfigError, match="Cannot update these configs at default cluster level"):
            check_broker(LAYERS, {ABSENT + name: "4"}, per_broker=False)


def test_a_static_option_of_a_listener_that_is_absent_is_rejected_at_the_start() -> None:
    with pytest.raises(ConfigError, match="unknown listener; the listeners are FIRST, SECOND"):
        BrokerConfig.parse({**STATIC, f"{ABSENT}ssl.keystore.location": "/x"})


def test_an_option_of_one_listener_leaves_the_broker_s_own_to_the_others() -> None:
    own = {"listener.name.first.ssl.keystore.location": "/of/first", "listener.name.first.ssl.client.auth": "none"}
    after = LAYERS.changed(broker=own).effective
    first, second = after.options_of("FIRST"), after.options_of("SECOND")
    assert (first.ssl_keystore_location, first.ssl_client_auth) == ("/of/first", "none")
    assert (second.ssl_keystore_location, second.ssl_client_auth) == ("/of/the/broker", "required")


@pytest.mark.parametrize(("name", "kind", "sensitive"), [
    ("plain.sasl.jaas.config", PASSWORD.code, True),
    ("plain.connections.max.reauth.ms", LONG.code, False),
    ("plain.unknown", UNKNOWN_TYPE, True),
])  # fmt: skip
def test_an_option_of_a_mechanism_of_a_listener_is_described_by_its_type(name: str, kind: int, sensitive: bool) -> None:
    described = describe_broker(LAYERS.changed(broker={ABSENT + name: "1"}))
    (row,) = (row for row in described if row.name == ABSENT + name)
    assert (row.type, row.sensitive) == (kind, sensitive)
