"""Compares DescribeConfigs with the answers of Apache Kafka 4.3.1 for the same settings."""

from __future__ import annotations

from broker.config import BrokerConfig
from broker.config.describe import (
    DescribedConfig,
    describe_all_brokers,
    describe_broker,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from broker.config.layers import Layers, Synonym
from protocol.config import INT, LIST, LONG, PASSWORD, UNKNOWN_TYPE, ConfigSource

TOPIC, BROKER, ALL, STATIC, DEFAULT = (ConfigSource(number) for number in range(1, 6))


def layers(cluster: dict[str, str] | None = None, broker: dict[str, str] | None = None) -> Layers:
    static = BrokerConfig.parse({"node.id": "1", "log.retention.hours": "100", "log.segment.bytes": "2097152"})
    return Layers(static, cluster or {}, broker or {})


def row(rows: list[DescribedConfig], name: str) -> DescribedConfig:
    return next(row for row in rows if row.name == name)


def test_a_topics_own_value_comes_before_the_brokers() -> None:
    described = row(describe_topic(layers(), {"segment.bytes": " 3000000 "}), "segment.bytes")
    assert described == DescribedConfig(
        name="segment.bytes",
        value="3000000",
        read_only=False,
        source=TOPIC,
        sensitive=False,
        synonyms=(
            Synonym("segment.bytes", "3000000", TOPIC),
            Synonym("log.segment.bytes", "2097152", STATIC),
            Synonym("log.segment.bytes", "1073741824", DEFAULT),
        ),
        type=INT.code,
        doc="Size at which a segment rolls. Retention and compaction work on whole segments.",
    )


def test_a_topic_has_the_brokers_value_where_it_has_none() -> None:
    described = row(describe_topic(layers({"log.segment.bytes": "4194304"}), {}), "segment.bytes")
    assert (described.value, described.source, described.is_default) == ("4194304", ALL, False)


def test_an_inherited_value_in_other_units_has_no_synonyms() -> None:
    described = row(describe_topic(layers(), {}), "retention.ms")
    assert (described.value, described.source, described.synonyms) == ("360000000", DEFAULT, ())


def test_a_list_is_told_with_commas() -> None:
    described = row(describe_topic(layers(), {"cleanup.policy": "compact , delete"}), "cleanup.policy")
    assert (described.value, described.type) == ("compact,delete", LIST.code)


def test_an_internal_option_is_told_where_it_is_set() -> None:
    name = "internal.segment.bytes"
    assert name not in [one.name for one in describe_topic(layers(), {})]
    assert row(describe_topic(layers(), {name: "1000"}), name).value == "1000"


def test_a_broker_tells_all_that_could_set_a_value() -> None:
    described = row(
        describe_broker(layers({"log.retention.ms": "60000"}, {"log.retention.ms": "5000"})), "log.retention.ms"
    )
    assert (described.value, described.source, described.read_only) == ("5000", BROKER, False)
    assert described.synonyms == (
        Synonym("log.retention.ms", "5000", BROKER),
        Synonym("log.retention.ms", "60000", ALL),
        Synonym("log.retention.hours", "100", STATIC),
        Synonym("log.retention.hours", "168", DEFAULT),
    )


def test_a_dynamic_value_puts_the_static_ones_of_other_units_out_of_force() -> None:
    described = row(describe_broker(layers(broker={"log.retention.ms": "5000"})), "log.retention.hours")
    assert described.value == "168"
    assert described.synonyms == (
        Synonym("log.retention.hours", "100", STATIC),
        Synonym("log.retention.hours", "168", DEFAULT),
    )


def test_an_option_without_a_value_has_none() -> None:
    described = row(describe_broker(layers()), "log.roll.ms")
    assert (described.value, described.source, described.synonyms) == (None, DEFAULT, ())


def test_only_dynamic_options_are_not_read_only() -> None:
    rows = describe_broker(layers())
    assert [row(rows, name).read_only for name in ("node.id", "log.segment.bytes")] == [True, False]


def test_a_name_that_no_option_has_might_be_secret() -> None:
    described = row(describe_broker(layers(broker={"bar.baz": "1"})), "bar.baz")
    assert described == DescribedConfig(
        "bar.baz", None, True, BROKER, True, (Synonym("bar.baz", None, BROKER),), UNKNOWN_TYPE, None
    )


def test_an_option_of_one_listener_has_that_of_all_behind_it() -> None:
    name = "listener.name.plaintext.max.connections"
    described = row(describe_broker(layers(broker={name: "7"})), name)
    assert (described.value, described.type, described.doc) == ("7", INT.code, None)
    assert described.synonyms == (Synonym(name, "7", BROKER), Synonym("max.connections", "2147483647", DEFAULT))


def test_a_throttle_is_told_where_it_is_set() -> None:
    name = "leader.replication.throttled.rate"
    assert name not in [one.name for one in describe_broker(layers())]
    described = row(describe_broker(layers({name: "100"})), name)
    assert (described.value, described.read_only, described.type) == ("100", False, LONG.code)


def test_all_brokers_have_what_is_set_for_all() -> None:
    rows = describe_all_brokers(layers({"log.segment.bytes": " 5194304 "}, {"log.retention.ms": "1"}))
    assert [(one.name, one.value, one.synonyms) for one in rows] == [
        ("log.segment.bytes", " 5194304 ", (Synonym("log.segment.bytes", " 5194304 ", ALL),))
    ]


def test_a_group_has_its_own_value_or_the_brokers() -> None:
    name = "consumer.session.timeout.ms"
    own = row(describe_group(layers(), {name: "50000"}), name)
    assert own.synonyms == (
        Synonym(name, "50000", ConfigSource.GROUP),
        Synonym(f"group.{name}", "45000", DEFAULT),
    )
    assert row(describe_group(layers(), {}), name).synonyms == (Synonym(f"group.{name}", "45000", DEFAULT),)


def test_a_streams_group_has_the_brokers_first_assignor() -> None:
    described = row(describe_group(layers(), {}), "streams.assignor.name")
    assert (described.value, described.synonyms) == ("sticky", (Synonym("group.streams.assignors", "sticky", DEFAULT),))


def test_an_option_that_only_groups_have_has_its_own_default() -> None:
    name = "share.auto.offset.reset"
    assert row(describe_group(layers(), {}), name).synonyms == (Synonym(name, "latest", DEFAULT),)


def test_a_subscription_has_its_own_values_or_the_defaults() -> None:
    rows = describe_client_metrics({"interval.ms": "1000"})
    assert [(one.name, one.value, one.source) for one in rows] == [
        ("interval.ms", "1000", ConfigSource.CLIENT_METRICS),
        ("match", "", DEFAULT),
        ("metrics", "", DEFAULT),
    ]


def test_no_value_of_a_password_is_told() -> None:
    assert not [one for one in describe_broker(layers()) if one.type == PASSWORD.code and one.value is not None]
