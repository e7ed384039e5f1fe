"""Compares configs, described, altered and listed, with Apache Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from protocol.messages import alter_configs, incremental_alter_configs
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.config.test_options import NOT_CHANGED_WHILE_RUNNING, known_options
from tests.interop.conformance.compare import Both
from tests.interop.conformance.meant import OPTIONS_OF_ITS_OWN
from tests.interop.conformance.peers import Peer

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP, UNKNOWN = 2, 4, 8, 16, 32, 0
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
FIRST_SYNONYM_VERSION, FIRST_DOCUMENTATION_VERSION = 1, 3
FIRST_TYPED_VERSION = 1

Change = tuple[str, int, str | None]


def describe(
    peer: Peer, version: int, *resources: tuple[int, str], keys: list[str] | None = None, more: bool = True
) -> None:
    requested = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    ]
    request = DescribeConfigsRequest(
        resources=requested,
        include_synonyms=more and version >= FIRST_SYNONYM_VERSION,
        include_documentation=more and version >= FIRST_DOCUMENTATION_VERSION,
    )
    peer.try_ask(request, version)


def test_topics_are_described(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        name = f"described-{version}"
        peer.create(name, retention_ms="1000", cleanup_policy="compact", segment_bytes="1048576")
        describe(peer, version, (TOPIC, name))
        describe(peer, version, (TOPIC, name), more=False)
        for keys in ([], ["retention.ms"], ["retention.ms", "no.such.config", "cleanup.policy"], ["no.such.config"]):
            describe(peer, version, (TOPIC, name), keys=keys)
        describe(peer, version, (TOPIC, "nowhere"), (TOPIC, "a b"), (TOPIC, ""), (TOPIC, name), keys=["retention.ms"])
        describe(peer, version, (TOPIC, name), (TOPIC, name), keys=["retention.ms"])
        describe(peer, version)

    both.each_version(DescribeConfigsRequest, script)


@pytest.mark.before_4
def test_where_a_value_comes_from(both: Both) -> None:
    """Version 0 only says if the value is a default; later versions return its source."""

    def script(peer: Peer, version: int) -> None:
        name = f"sources-{version}"
        peer.create(name, retention_ms="1000", cleanup_policy="compact")
        keys = ["retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes", "flush.ms"]
        describe(peer, version, (TOPIC, name), (TOPIC, "nowhere"), (TOPIC, ""), keys=keys)

    both.each_version(DescribeConfigsRequest, script)


RESOURCES = [(BROKER, "7"), (BROKER, "x"), (LOGGER, "7"), (LOGGER, ""), (UNKNOWN, "x"), (99, "x"), (GROUP, "")]


@pytest.mark.parametrize("resource", [*RESOURCES, (CLIENT_METRICS, ""), (CLIENT_METRICS, "m"), (GROUP, "g")], ids=str)
def test_other_resources_are_described(both: Both, resource: tuple[int, str]) -> None:
    def script(peer: Peer, version: int) -> None:
        describe(peer, version, resource)

    both.each_version(DescribeConfigsRequest, script)


def test_the_brokers_defaults_are_described(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        describe(peer, version, (BROKER, ""))

    both.each_version(DescribeConfigsRequest, script)


def names_of_options(peer: Peer, version: int) -> set[str]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    answer = peer.quietly(DescribeConfigsRequest(resources=[resource]), version)
    assert isinstance(answer, DescribeConfigsResponse)
    return {row.name for row in answer.results[0].configs}


def test_every_option_of_the_broker_is_described(both: Both) -> None:
    """Compares the options that both brokers have."""
    *_, newest = both.pair.versions(DescribeConfigsRequest)
    ours, theirs = (names_of_options(peer, newest) for peer in (both.pair.odradek, both.pair.apache))
    shared = sorted((ours & theirs) - OPTIONS_OF_ITS_OWN.keys())

    def script(peer: Peer) -> None:
        describe(peer, newest, (BROKER, "1"), keys=shared)

    both(script)


CHANGES: dict[str, list[Change]] = {
    "set": [("retention.ms", SET, "5000")],
    "several": [("retention.ms", SET, "5000"), ("segment.bytes", SET, "1048576")],
    "deleted": [("cleanup.policy", DELETE, None)],
    "deleted what is not set": [("retention.bytes", DELETE, None)],
    "deleted with a value": [("cleanup.policy", DELETE, "compact")],
    "appended": [("cleanup.policy", APPEND, "delete")],
    "appended what is there": [("cleanup.policy", APPEND, "compact")],
    "appended to what is no list": [("retention.ms", APPEND, "5")],
    "appended nothing": [("cleanup.policy", APPEND, None)],
    "subtracted": [("cleanup.policy", SUBTRACT, "compact")],
    "subtracted what is not there": [("cleanup.policy", SUBTRACT, "delete")],
    "subtracted from what is no list": [("retention.ms", SUBTRACT, "5")],
    "set to nothing": [("retention.ms", SET, None)],
    "set to an empty text": [("retention.ms", SET, "")],
    "an empty list": [("cleanup.policy", SET, "")],
    "twice": [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
    "an unknown option": [("no.such.config", SET, "1")],
    "an unknown option deleted": [("no.such.config", DELETE, None)],
    "no name": [("", SET, "1")],
    "a wrong type": [("retention.ms", SET, "soon")],
    "out of range": [("max.message.bytes", SET, "-1")],
    "another value": [("cleanup.policy", SET, "sometimes")],
    "spaces": [("retention.ms", SET, " 5000 ")],
    "one that is wrong": [("retention.ms", SET, "1"), ("segment.bytes", SET, "x")],
    "a throttled replica": [("leader.replication.throttled.replicas", SET, "0:1")],
    "a throttled replica that is none": [("leader.replication.throttled.replicas", SET, "zero")],
    "more in-sync replicas": [("min.insync.replicas", SET, "2")],
    "tiered": [("remote.storage.enable", SET, "true")],
    "nothing": [],
}


@pytest.mark.parametrize("case", CHANGES)
def test_topics_are_altered_in_part(both: Both, case: str) -> None:
    def script(peer: Peer, version: int) -> None:
        name = f"altered-{list(CHANGES).index(case)}-{version}"
        peer.create(name, cleanup_policy="compact")
        for validate_only in (True, False):
            alter_in_part(peer, version, (TOPIC, name, CHANGES[case]), validate_only=validate_only)
        peer.wait_for_metadata()
        describe(peer, 4, (TOPIC, name), keys=[key for key, _, _ in CHANGES[case]])

    both.each_version(IncrementalAlterConfigsRequest, script)


def alter_in_part(
    peer: Peer, version: int, *resources: tuple[int, str, Sequence[Change]], validate_only: bool = False
) -> None:
    altered = [
        incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ],
        )
        for kind, name, changes in resources
    ]
    peer.try_ask(IncrementalAlterConfigsRequest(resources=altered, validate_only=validate_only), version)


WHOLE: dict[str, dict[str, str | None]] = {
    "replaced": {"retention.ms": "5000"},
    "emptied": {},
    "a null value": {"retention.ms": None},
    "an unknown option": {"no.such.config": "1"},
    "a wrong type": {"retention.ms": "soon"},
}


def alter_whole(
    peer: Peer, version: int, *resources: tuple[int, str, Mapping[str, str | None]], validate_only: bool = False
) -> None:
    altered = [
        alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()],
        )
        for kind, name, configs in resources
    ]
    peer.try_ask(AlterConfigsRequest(resources=altered, validate_only=validate_only), version)


@pytest.mark.parametrize("case", WHOLE)
def test_topics_are_altered_as_a_whole(both: Both, case: str) -> None:
    def script(peer: Peer, version: int) -> None:
        name = f"whole-{list(WHOLE).index(case)}-{version}"
        peer.create(name, cleanup_policy="compact")
        for validate_only in (True, False):
            alter_whole(peer, version, (TOPIC, name, WHOLE[case]), validate_only=validate_only)
        peer.wait_for_metadata()
        describe(peer, 4, (TOPIC, name), keys=["retention.ms", "cleanup.policy"])

    both.each_version(AlterConfigsRequest, script)


ALTERED: dict[str, list[tuple[int, str, list[Change]]]] = {
    "an unknown topic": [(TOPIC, "nowhere", [("retention.ms", SET, "1")])],
    "an invalid topic": [(TOPIC, "a b", [("retention.ms", SET, "1")])],
    "no topic": [(TOPIC, "", [("retention.ms", SET, "1")])],
    "a topic twice": [
        (TOPIC, "altered", [("retention.ms", SET, "1")]),
        (TOPIC, "altered", [("retention.ms", SET, "2")]),
    ],
    "some": [(TOPIC, "nowhere", []), (TOPIC, "altered", [("retention.ms", SET, "7")])],
    "an unknown type": [(99, "x", [("a", SET, "1")])],
    "no type": [(UNKNOWN, "x", [("a", SET, "1")])],
    "the broker": [(BROKER, "1", [("log.cleaner.threads", SET, "2")])],
    "the broker, back": [(BROKER, "1", [("log.cleaner.threads", DELETE, None)])],
    "the broker, an option that cannot change": [(BROKER, "1", [("num.partitions", SET, "2")])],
    "the broker, an unknown option": [(BROKER, "1", [("no.such.option", SET, "2")])],
    "the broker, a wrong type": [(BROKER, "1", [("log.cleaner.threads", SET, "many")])],
    "all brokers": [(BROKER, "", [("log.retention.ms", SET, "-1")])],
    "all brokers, an option of one": [(BROKER, "", [("advertised.listeners", SET, "PLAINTEXT://x:1")])],
    "another broker": [(BROKER, "7", [("log.cleaner.threads", SET, "2")])],
    "a broker that is no number": [(BROKER, "x", [("log.cleaner.threads", SET, "2")])],
    "a group": [(GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")])],
    "a group, too short": [(GROUP, "g", [("consumer.session.timeout.ms", SET, "1")])],
    "a group, an unknown option": [(GROUP, "g", [("no.such.option", SET, "1")])],
    "no group": [(GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])],
    "client metrics": [(CLIENT_METRICS, "m", [("interval.ms", SET, "60000"), ("metrics", SET, "org.apache.")])],
    "client metrics, too often": [(CLIENT_METRICS, "m", [("interval.ms", SET, "1")])],
    "client metrics, an unknown option": [(CLIENT_METRICS, "m", [("no.such.option", SET, "1")])],
    "client metrics, a match": [(CLIENT_METRICS, "m", [("match", SET, "client_id=a.*")])],
    "client metrics, a bad match": [(CLIENT_METRICS, "m", [("match", SET, "nobody=a.*")])],
    "nothing": [],
}


@pytest.mark.parametrize("case", ALTERED)
@pytest.mark.parametrize("validate_only", [True, False])
def test_resources_are_altered(both: Both, case: str, validate_only: bool) -> None:
    def script(peer: Peer, version: int) -> None:
        if "altered" not in peer.names.values():
            peer.create("altered")
        alter_in_part(peer, version, *ALTERED[case], validate_only=validate_only)
        peer.wait_for_metadata()
        for kind, name, changes in ALTERED[case]:
            describe(peer, 4, (kind, name), keys=[key for key, _, _ in changes])

    both.each_version(IncrementalAlterConfigsRequest, script)


@pytest.mark.parametrize("broker", ["1", ""])
@pytest.mark.parametrize("value", [None, "x", "1", "100"])
def test_the_options_that_clients_change_are_those_of_kafka(both: Both, broker: str, value: str | None) -> None:
    """Sets each option of Kafka in turn to the value, or to its default."""
    options = [
        option for option in known_options() if option.kind == "broker" and option.name not in NOT_CHANGED_WHILE_RUNNING
    ]

    def script(peer: Peer) -> None:
        for option in options:
            default = "" if option.default == "<null>" else option.default
            changes = [(option.name, SET, default if value is None else value)]
            alter_in_part(peer, 1, (BROKER, broker, changes), validate_only=True)

    both(script)


@pytest.mark.parametrize("broker", ["1", ""])
@pytest.mark.parametrize("value", [None, "x", "1", "100"])
def test_the_options_of_a_listener_that_is_absent_are_those_of_kafka(
    both: Both, broker: str, value: str | None
) -> None:
    """Sets each option of Kafka in turn for a listener that neither broker has. Leaves out options whose classes Kafka
    loads, and the option that the cluster's own configs also have, which Kafka checks instead."""
    left_out = ("principal.builder.class", "ssl.engine.factory.class", "min.insync.replicas")

    def script(peer: Peer) -> None:
        for option in known_options():
            if option.kind == "broker" and option.name not in left_out:
                default = "" if option.default == "<null>" else option.default
                changes = [(f"listener.name.internal.{option.name}", SET, default if value is None else value)]
                alter_in_part(peer, 1, (BROKER, broker, changes), validate_only=True)

    both(script)


def test_the_options_of_a_listener_that_is_absent_are_kept(both: Both) -> None:
    options = {
        "listener.name.internal.ssl.keystore.location": "/nowhere/test.jks",
        "listener.name.internal.ssl.truststore.type": "PKCS12",
        "listener.name.internal.ssl.truststore.password": "password",
        "listener.name.internal.max.connections": "7",
        "listener.name.internal.plain.sasl.jaas.config": "x",
        "listener.name.internal.unknown": "x",
        "listener.name.INTERNAL.ssl.keystore.type": "PEM",
        "listener.name..ssl.keystore.type": "PEM",
        "log.cleaner.threads": "2",
    }

    def script(peer: Peer) -> None:
        for operation in (SET, DELETE):
            changes = [(name, operation, None if operation == DELETE else text) for name, text in options.items()]
            alter_in_part(peer, 1, (BROKER, "1", changes))
            peer.wait_for_metadata()
            describe(peer, 4, (BROKER, "1"), keys=[*options])

    both(script)


def test_resources_are_listed(both: Both) -> None:
    def script(peer: Peer) -> None:
        alter_in_part(peer, 1, (GROUP, "listed", [("consumer.session.timeout.ms", SET, "50000")]))
        alter_in_part(peer, 1, (CLIENT_METRICS, "listed", [("interval.ms", SET, "60000")]))
        peer.wait_for_metadata()
        peer.try_ask(ListConfigResourcesRequest(), 0)
        for kinds in ([GROUP], [CLIENT_METRICS], [BROKER], [LOGGER], [GROUP, CLIENT_METRICS, GROUP], [99], [UNKNOWN]):
            peer.try_ask(ListConfigResourcesRequest(resource_types=kinds), 1)

    both(script)
