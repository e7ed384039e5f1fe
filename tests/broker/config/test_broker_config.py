"""Tests BrokerConfig: settings that are derived from several options, and invalid combinations."""

from __future__ import annotations

import pytest

from broker.config import BrokerConfig
from protocol.config import ConfigError
from storage.config import LogConfig


def error(texts: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig.parse(texts)
    return raised.value.message


def test_the_defaults_are_kafkas_for_topics() -> None:
    assert BrokerConfig().topic_defaults == LogConfig()


def test_the_finest_unit_that_is_set_counts() -> None:
    defaults = BrokerConfig.parse({"log.retention.minutes": "2", "log.roll.hours": "1", "log.roll.jitter.ms": "3"})
    topic = defaults.topic_defaults
    assert (topic.retention_ms, topic.segment_ms, topic.segment_jitter_ms) == (120_000, 3_600_000, 3)


def test_any_negative_retention_is_no_limit() -> None:
    assert BrokerConfig.parse({"log.retention.ms": "-5"}).topic_defaults.retention_ms == -1


def test_flushing_by_time_falls_back_to_the_scheduler() -> None:
    assert BrokerConfig.parse({"log.flush.scheduler.interval.ms": "7"}).topic_defaults.flush_ms == 7


def test_a_topics_own_options_come_first() -> None:
    config = BrokerConfig.parse({"log.segment.bytes": "2000000", "log.retention.ms": "5"})
    topic = config.log_config({"retention.ms": "9"})
    assert (topic.segment_bytes, topic.retention_ms, topic.explicit) == (2_000_000, 9, {"retention.ms": "9"})
    assert config.log_config({}) is config.topic_defaults


def test_a_topics_option_is_checked_against_the_brokers() -> None:
    config = BrokerConfig.parse({"log.cleaner.max.compaction.lag.ms": "3"})
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        config.log_config({"min.compaction.lag.ms": "5"})


def test_a_groups_own_options_come_first_within_the_brokers_limits() -> None:
    config = BrokerConfig.parse(
        {"group.consumer.assignment.interval.ms": "7", "group.share.max.session.timeout.ms": "50000"}
    )
    group = config.group_config({"share.session.timeout.ms": "55000", "share.auto.offset.reset": "earliest"})
    assert (group.consumer_assignment_interval_ms, group.share_session_timeout_ms) == (7, 50_000)
    assert group.share_auto_offset_reset == "earliest"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("consumer.session.timeout.ms", "5", "in the range 45000 to 60000 inclusive."),
        ("consumer.heartbeat.interval.ms", "100000", "in the range 5000 to 15000 inclusive."),
        (
            "share.partition.max.record.locks",
            "5000",
            "in the range 100 to 4000 inclusive.",
        ),
        ("share.delivery.count.limit", "100", "in the range 2 to 10 inclusive."),
        ("streams.num.standby.replicas", "5", "less than or equal to 2"),
    ],
)
def test_a_groups_option_outside_of_the_brokers_limits_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig().check_group({name: value})
    assert raised.value.message == f"{name} must be {message}"


def test_data_goes_to_the_directories() -> None:
    several = BrokerConfig.parse({"log.dir": "/a", "log.dirs": "/b,/c"})
    assert (several.data_dirs, several.metadata_dir) == (("/b", "/c"), "/b")
    assert BrokerConfig.parse({"log.dir": "/a", "metadata.log.dir": "/m"}).metadata_dir == "/m"


def test_the_older_name_of_the_nodes_number_stands_for_it() -> None:
    config = BrokerConfig.parse({"broker.id": "7"})
    assert (config.node_id, config.broker_id) == (7, 7)


def test_listeners_are_parsed() -> None:
    config = BrokerConfig.parse(
        {
            "listeners": "inside://:9092, OUTSIDE://[::1]:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:plaintext",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    assert [tuple(one) for one in config.bound_listeners] == [
        ("INSIDE", "", 9092, "PLAINTEXT"),
        ("OUTSIDE", "::1", 0, "PLAINTEXT"),
    ]
    assert config.inter_broker_listener == "INSIDE"


def test_connection_limits_are_by_host() -> None:
    texts = {"max.connections.per.ip.overrides": "10.0.0.1:5, ::1:6", "max.connections.per.ip": "0"}
    assert BrokerConfig.parse(texts).connection_limits == {"10.0.0.1": 5, "::1": 6}


CONTROLLER = {"controller.listener.names": "C"}


REMOTE = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "a:9093,[::1]:9094",
    "controller.listener.names": "C",
    "listeners": "A://:1",
    "listener.security.protocol.map": "A:PLAINTEXT,C:PLAINTEXT",
}
"""The options of a broker whose controllers are other processes."""


def test_a_broker_s_controllers_are_its_voters_or_else_its_bootstrap_servers() -> None:
    config = BrokerConfig.parse(REMOTE)
    assert config.has_remote_controllers
    assert config.controllers == ((-1, "a", 9093), (-1, "::1", 9094))
    voters = BrokerConfig.parse({**REMOTE, "controller.quorum.voters": "2@b:9093, 3@c:9093"})
    assert voters.controllers == ((2, "b", 9093), (3, "c", 9093))


def test_a_node_is_its_own_controller_unless_it_is_told_otherwise() -> None:
    assert not BrokerConfig().has_remote_controllers
    assert not BrokerConfig.parse({"process.roles": "controller,broker"}).has_remote_controllers


def test_a_controller_s_listeners_are_those_of_its_names() -> None:
    texts = {**CONTROLLER, "listeners": "PLAINTEXT://:1,C://:2", "advertised.listeners": "PLAINTEXT://a:1,C://b:2"}
    config = BrokerConfig.parse(texts)
    assert config.bound_controllers == (("C", "", 2, "PLAINTEXT"),)
    assert config.advertised_controllers == (("C", "b", 2, "PLAINTEXT"),)
    assert config.bound_listeners == (("PLAINTEXT", "", 1, "PLAINTEXT"),)
    assert config.has_peers


def test_a_controllers_listener_on_all_interfaces_need_not_be_advertised() -> None:
    listeners = {"listeners": "PLAINTEXT://0.0.0.0:1,C://0.0.0.0:2", "advertised.listeners": "PLAINTEXT://a:1"}
    config = BrokerConfig.parse({**CONTROLLER, **listeners})
    assert config.bound_controllers == (("C", "0.0.0.0", 2, "PLAINTEXT"),)
    assert config.advertised_controllers == (("C", "", 2, "PLAINTEXT"),), "this machine's name, found when it is bound"


def test_a_controller_without_a_broker_has_no_listeners_for_clients() -> None:
    config = BrokerConfig.parse({**CONTROLLER, "process.roles": "controller", "listeners": "C://a:2"})
    assert not config.is_broker
    assert config.bound_listeners == ()
    assert config.advertised_controllers == config.bound_controllers == (("C", "a", 2, "PLAINTEXT"),)


def test_a_node_without_names_of_controllers_listeners_has_no_peers() -> None:
    assert not BrokerConfig().has_peers
    assert BrokerConfig.parse(REMOTE).has_peers


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"listeners": "foo"}, "'foo' is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://a:70000"}, "is not NAME://host:port"),
        ({"listeners": "INSIDE://:1"}, "listener INSIDE has no protocol in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "PLAINTEXT appears twice"),
        (
            {"listeners": "SASL_SSL://:1"},
            "listener.name.sasl_ssl.gssapi.sasl.jaas.config: GSSAPI, the default of sasl.enabled",
        ),
        ({"listener.security.protocol.map": "A:B"}, "'A:B' is not NAME:PROTOCOL"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "nonroutable meta-address 0.0.0.0"),
        ({"advertised.listeners": "SSL://a:1"}, "advertised.listeners: listeners doesn't contain SSL"),
        ({"controller.listener.names": "PLAINTEXT"}, "listeners has no listener for clients"),
        ({"inter.broker.listener.name": "A"}, "inter.broker.listener.name is A, which is not an advertised"),
        ({"process.roles": "controller"}, "PLAINTEXT is none of them"),
        (
            {"process.roles": "controller", **CONTROLLER, "listeners": "C://:1,PLAINTEXT://:2"},
            "PLAINTEXT is none of them",
        ),
        ({"controller.listener.names": "C"}, "at least one value appearing in the 'listeners' configuration"),
        (
            {
                **CONTROLLER,
                "listeners": "PLAINTEXT://:1,C://:2",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,C:SASL_SSL",
            },
            "listener.name.c.gssapi.sasl.jaas.config: GSSAPI, the default of sasl.enabled",
        ),
        ({**CONTROLLER, "listeners": "PLAINTEXT://:1,C://:2", "advertised.listeners": "C://0.0.0.0:2"}, "nonroutable"),
        ({"process.roles": "broker"}, "either controller.quorum.bootstrap.servers must contain"),
        ({**REMOTE, "controller.listener.names": ""}, "controller.listener.names"),
        ({**REMOTE, "listeners": "A://:1,C://:2"}, "must not contain a value appearing in the 'listeners'"),
        (
            {**REMOTE, "controller.quorum.voters": "1@a:1,2@b:1"},
            "the node id 1 must not be included in the set of voters",
        ),
        (
            {**REMOTE, "listener.security.protocol.map": "A:PLAINTEXT,C:SASL_SSL"},
            "sasl.mechanism.controller.protocol: listener C uses GSSAPI",
        ),
        ({**REMOTE, "controller.quorum.bootstrap.servers": "a"}, "'a' is not host:port"),
        ({**REMOTE, "controller.quorum.bootstrap.servers": "a:0"}, "'a:0' is not host:port"),
        ({**REMOTE, "controller.quorum.voters": "a:1"}, "'a:1' is not id@host:port"),
        ({**REMOTE, "controller.quorum.voters": "-2@a:1"}, "'-2@a:1' is not id@host:port"),
        ({"replica.selector.class": "com.example.Nearest"}, "replica.selector.class is com.example.Nearest; "),
        (
            {"controller.quorum.voters": "1@a:1,2@b:1"},
            "controller.listener.names must contain at least one value appearing in the 'listeners' configuration",
        ),
        (
            {**CONTROLLER, "process.roles": "controller", "listeners": "C://:1", "controller.quorum.voters": "2@a:1"},
            "the node id 1 must be included in the set of voters controller.quorum.voters=[2]",
        ),
        ({"broker.id": "2", "node.id": "1"}, "You must set `node.id` to the same value as `broker.id`."),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.cleaner.dedupe.buffer.size": "1"}, "must be at least 1MB per cleaner thread"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip can be set to zero only if"),
        ({"max.connections.per.ip.overrides": "a"}, "'a' is not host:count"),
        ({"max.connections.per.ip.overrides": f"a:{'9' * 5_000}"}, "is not host:count"),
        ({"listeners": f"PLAINTEXT://a:{'9' * 5_000}"}, "is not NAME://host:port"),
        ({**REMOTE, "controller.quorum.voters": f"{'9' * 5_000}@a:1"}, "is not id@host:port"),
        (
            {"group.share.session.timeout.ms": "5"},
            "must be greater than or equal to group.share.min.session.timeout.ms",
        ),
    ],
)
def test_options_that_do_not_go_together_are_told(texts: dict[str, str], message: str) -> None:
    assert message in error(texts)
