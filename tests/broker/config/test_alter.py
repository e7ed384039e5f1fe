"""Dynamic configs: the options that clients may change, in the words of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from broker.config import BrokerConfig
from broker.config.alter import broker_checker, check_client_metrics, group_checker, list_defaults
from broker.config.layers import Layers
from protocol.config import ConfigError
from protocol.errors import ErrorCode, KafkaError

LAYERS = Layers(BrokerConfig.parse({"log.retention.hours": "100"}))


def message_of(name: str, configs: dict[str, str], layers: Layers = LAYERS) -> str:
    with pytest.raises(KafkaError) as raised:
        broker_checker(lambda: layers, lambda *_: None)(name, configs)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    return str(raised.value.message)


@pytest.mark.parametrize(
    ("broker", "name", "value", "message"),
    [
        (
            "",
            "log.segment.bytes",
            "1",
            "Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576",
        ),
        ("", "node.id", "2", "Cannot update these configs dynamically: [node.id]"),
        ("1", "num.partitions", "2", "Cannot update these configs dynamically: [num.partitions]"),
        ("1", "advertised.listeners", "A://b:1", "Cannot update these configs dynamically: [advertised.listeners]"),
        ("", "num.io.threads", "9", "Cannot update these configs dynamically: [num.io.threads]"),
        (
            "1",
            "ssl.keystore.location",
            "x",
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            "",
            "listener.name.plaintext.max.connections",
            "7",
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[listener.name.plaintext.max.connections]",
        ),
        ("", "max.connections", "x", "Invalid value x for configuration max.connections: Not a number of type INT"),
        (
            "1",
            "listener.name.a.max.connections",
            "x",
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            "",
            "leader.replication.throttled.rate",
            "-1",
            "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0",
        ),
        (
            "",
            "log.retention.ms",
            "0",
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        ("", "log.roll.ms", "0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
        (
            "",
            "max.connections.per.ip",
            "0",
            "requirement failed: max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set.",
        ),
    ],
)
def test_a_change_is_refused_in_kafkas_words(broker: str, name: str, value: str, message: str) -> None:
    assert message_of(broker, {name: value}) == message


@pytest.mark.parametrize(
    ("broker", "name", "value"),
    [
        ("", "log.retention.ms", "6000"),
        ("1", "log.retention.ms", "-5"),
        ("1", "bar.baz", "1"),
        ("", "leader.replication.throttled.rate", "100"),
        ("1", "listener.name.plaintext.max.connections", "7"),
        ("1", "listener.name.plaintext.ssl.keystore.location", "/x"),
        ("", "log.cleanup.policy", "delete,compact"),
        ("", "group.consumer.assignment.interval.ms", "5"),
    ],
)
def test_a_change_is_allowed_as_kafka_allows_it(broker: str, name: str, value: str) -> None:
    broker_checker(lambda: LAYERS, lambda *_: None)(broker, {name: value})


def test_what_is_set_already_is_in_nobodys_way() -> None:
    moved = Layers(BrokerConfig(), {"num.io.threads": "9"})
    broker_checker(lambda: moved, lambda *_: None)("", {"num.io.threads": "9", "log.retention.ms": "5"})
    assert (
        message_of("", {"num.io.threads": "10"}, moved) == "Cannot update these configs dynamically: [num.io.threads]"
    )


def test_changes_come_into_force_over_what_the_broker_was_started_with() -> None:
    after = LAYERS.changed(cluster={"log.retention.ms": "60000"}).changed(broker={"log.retention.ms": "5000"})
    assert [layers.effective.topic_defaults.retention_ms for layers in (LAYERS, after)] == [360_000_000, 5000]


def test_what_cannot_be_used_is_told_and_left_out() -> None:
    layers = Layers(
        BrokerConfig(), {"log.segment.bytes": "x", "log.retention.ms": "5", "node.id": "9", "listeners": "A"}
    )
    assert layers.problems == ("Invalid value x for configuration log.segment.bytes: Not a number of type INT",)
    assert (layers.effective.topic_defaults.retention_ms, layers.effective.node_id) == (5, 1)


def test_values_that_do_not_go_together_leave_the_broker_as_it_was_started() -> None:
    layers = Layers(BrokerConfig(), {"log.retention.ms": "0"})
    assert layers.effective is layers.static
    assert layers.problems == ("log.retention.ms must be unlimited (-1) or, greater than or equal to 1",)


def test_a_groups_change_is_checked_against_the_brokers_limits() -> None:
    with pytest.raises(ConfigError, match=r"must be less than or equal to group\.share\.max\.assignment\.interval\.ms"):
        group_checker(lambda: LAYERS)("g", {"share.assignment.interval.ms": "20000"})


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("zz", "1", ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: zz"),
        (
            "interval.ms",
            "1",
            ErrorCode.INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("match", "x=1", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: x=1"),
        ("match", "client_id=[a", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=[a"),
    ],
)
def test_a_wrong_subscription_is_refused(name: str, value: str, code: ErrorCode, message: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_client_metrics("m", {name: value})
    assert (raised.value.code, raised.value.message) == (code, message)


def test_a_subscription_may_match_by_pattern() -> None:
    check_client_metrics("m", {"match": "client_id=a.*,client_software_name=b", "interval.ms": "1000"})


def test_lists_have_defaults_to_append_to() -> None:
    defaults = list_defaults()
    assert (defaults["log.cleanup.policy"], defaults["log.dirs"]) == ("delete", "")
    assert defaults["log.retention.ms"] is None
    assert "retention.ms" not in defaults


INVALID = "Invalid value org.apache.kafka.common.config.ConfigException: "
CLEANING = Layers(BrokerConfig.parse({"log.cleaner.threads": "4"}))


@pytest.mark.parametrize("broker", ["", "1"])
def test_the_cleaners_threads_are_doubled_or_halved_at_most(broker: str) -> None:
    for threads in ("2", "3", "4", "8"):
        broker_checker(lambda: CLEANING, lambda *_: None)(broker, {"log.cleaner.threads": threads})
    more = message_of(broker, {"log.cleaner.threads": "9"}, CLEANING)
    assert more.startswith(f"{INVALID}Log cleaner threads cannot be increased to more than double the current value 4")
    fewer = message_of(broker, {"log.cleaner.threads": "1"}, CLEANING)
    assert fewer.startswith(f"{INVALID}Log cleaner threads cannot be reduced to less than half the current value 4")
