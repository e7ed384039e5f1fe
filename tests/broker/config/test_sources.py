"""Tests the sources of the configuration, and the errors for invalid settings."""

from __future__ import annotations

import os

import pytest

from broker.config.sources import (
    ConfigProblems,
    Loaded,
    from_assignments,
    from_environment,
    from_file,
    from_flags,
    load,
)

STOCK_FILE = """
# as Apache Kafka ships it
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.recovery.threads.per.data.dir=1
log.retention.hours=168
zookeeper.connect=localhost:2181
"""


def load_all(
    file: str = "", environ: dict[str, str] | None = None, sets: tuple[str, ...] = (), **flags: str | None
) -> Loaded:
    return load(
        from_file("server.properties", file),
        from_environment(environ or {}),
        from_assignments(sets),
        from_flags(flags.get("data"), flags.get("listen")),
    )


def problems(file: str = "", environ: dict[str, str] | None = None, sets: tuple[str, ...] = ()) -> tuple[str, ...]:
    with pytest.raises(ConfigProblems) as raised:
        load_all(file, environ, sets)
    return raised.value.problems


def test_without_sources_the_broker_is_local() -> None:
    config = load_all().config
    assert [(one.host, one.port) for one in config.bound_listeners] == [("127.0.0.1", 9092)]
    assert (config.data_dirs, config.node_id) == ((os.path.abspath("data"),), 1)


def test_the_file_that_kafka_ships_runs() -> None:
    loaded = load_all(STOCK_FILE)
    assert [(one.name, one.host, one.port) for one in loaded.config.bound_listeners] == [("PLAINTEXT", "", 9092)]
    assert [(one.host, one.port) for one in loaded.config.advertised] == [("localhost", 9092)]
    assert loaded.config.data_dirs == ("/tmp/kraft-combined-logs",)


UNBUILT = "this broker authenticates to other nodes by passwords only, and OpenSSL has no such setting"


def test_what_has_no_effect_is_told() -> None:
    unused = load_all("zookeeper.sync.time.ms=1\nlistener.name.x.ssl.protocol=y\nssl.protocol=z").unused
    assert [(one.setting.name, one.reason) for one in unused] == [
        ("zookeeper.sync.time.ms", "Kafka 4 removed it"),
        ("listener.name.x.ssl.protocol", UNBUILT),
        ("ssl.protocol", UNBUILT),
    ]


def test_a_later_source_is_stronger() -> None:
    file, environ = "num.partitions=2\nlog.segment.bytes=2000000", {"KAFKA_NUM_PARTITIONS": "3"}
    assert load_all(file, environ).config.num_partitions == 3
    assert load_all(file, environ, ("num.partitions=4",)).config.num_partitions == 4
    assert load_all(file, environ).config.log_segment_bytes == 2_000_000


def test_the_last_of_a_name_counts_within_a_file() -> None:
    assert load_all("num.partitions=2\nnum.partitions=3").config.num_partitions == 3


def test_a_stronger_source_wins_in_other_units_too() -> None:
    assert (
        load_all("log.retention.ms=5", sets=("log.retention.hours=1",)).config.topic_defaults.retention_ms == 3_600_000
    )


def test_the_finer_unit_wins_within_a_source() -> None:
    assert load_all("log.retention.hours=1\nlog.retention.ms=5").config.topic_defaults.retention_ms == 5


def test_flags_set_directory_and_address() -> None:
    config = load_all("log.dir=/a\nadvertised.listeners=PLAINTEXT://b:1", data="/c", listen="[::1]:0").config
    assert config.data_dirs == ("/c",)
    assert [(one.name, one.host, one.port) for one in config.advertised] == [("PLAINTEXT", "::1", 0)]


def test_an_advertised_address_of_the_environment_stays_with_another_port_to_listen_on() -> None:
    config = load_all(environ={"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://b:1"}, listen="0.0.0.0:9092").config
    assert [(one.host, one.port) for one in config.advertised] == [("b", 1)]


def test_the_environment_spells_dots_underscores_and_dashes() -> None:
    settings = from_environment(
        {"KAFKA_A_B__C___D": "1", "KAFKA_HEAP_OPTS": "-Xmx1g", "HOME": "/", "KAFKA_VERSION": "4"}
    )
    assert [(name, value) for name, value, _ in settings] == [("a.b_c-d", "1")]


def test_what_kubernetes_sets_for_a_service_called_kafka_is_no_option() -> None:
    environ = {
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
    }
    assert from_environment(environ) == []


def test_an_unknown_option_names_itself_its_source_and_the_nearest() -> None:
    file, environ = "\nlog.retentoin.ms=1", {"KAFKA_NUM_PARTITION": "1"}
    assert problems(file, environ, ("qqqq=1",)) == (
        "server.properties line 2: log.retentoin.ms: unknown option; did you mean log.retention.ms?",
        "environment KAFKA_NUM_PARTITION: num.partition: unknown option; did you mean num.partitions?",
        "--set: qqqq: unknown option",
    )


def test_an_ill_typed_option_names_itself_and_its_source() -> None:
    assert problems("num.partitions=many", sets=("log.segment.bytes=1",)) == (
        "server.properties line 1: Invalid value many for configuration num.partitions: Not a number of type INT",
        "--set: Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576",
    )


def test_what_would_be_unsafe_to_ignore_is_refused() -> None:
    assert problems("authorizer.class.name=x.Y") == (
        "server.properties line 1: authorizer.class.name is x.Y; Java classes are not loaded, only "
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer is supported",
    )
    assert load_all("authorizer.class.name=").config.node_id == 1


def test_a_contradiction_names_a_source() -> None:
    assert problems("\n\nlog.retention.ms=0") == (
        "server.properties line 3: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )


def test_a_broken_file_is_told_with_its_name() -> None:
    assert problems("a=\\u12") == ("server.properties line 1: \\u must be followed by four hexadecimal digits",)


@pytest.mark.parametrize("text", ["log.retention.ms", "=5", ""])
def test_an_assignment_has_a_key_and_a_value(text: str) -> None:
    assert problems(sets=(text,))[0].startswith(f"--set {text}: expected NAME=VALUE")


@pytest.mark.parametrize("text", ["9092", "localhost", "a:b", "a:70000", "a:-1"])
def test_an_address_to_listen_on_has_a_host_and_a_port(text: str) -> None:
    with pytest.raises(ConfigProblems, match="is not HOST:PORT"):
        from_flags(None, text)
