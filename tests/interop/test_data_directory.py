"""Moves a data directory between Odradek and Apache Kafka 4, in both directions, with all of its contents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from bench.jars import APACHE_KAFKA, APACHE_TOOLS
from tests.interop import jvm
from tests.interop.brokers import CLUSTER_ID, ApacheKafka, Broker, Odradek
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.driver import CODECS, Kind
from tests.interop.processes import run

pytestmark = pytest.mark.odradek_only

CLIENT = Confluent()
CONFIGS = "cleanup.policy=delete,max.message.bytes=200000,retention.ms=864000000"


class Open(Protocol):
    """Opens a directory with a broker of a kind and, for Apache Kafka, of a version."""

    def __call__(self, kind: type[Odradek] | type[ApacheKafka], version: str = ...) -> Broker: ...


@pytest.fixture
def open_with(tmp_path: Path) -> Iterator[Open]:
    """Opens the test's only directory with a broker of a kind, after the previous broker has stopped cleanly."""
    opened: list[Broker] = []
    data = tmp_path / "data"

    def open_it(kind: type[Odradek] | type[ApacheKafka], version: str = APACHE_KAFKA) -> Broker:
        if opened:
            opened[-1].stop()
        broker = Odradek(data) if kind is Odradek else ApacheKafka(data, formatted=data.exists(), version=version)
        opened.append(broker)
        broker.start()
        return broker

    yield open_it
    for broker in opened:
        broker.stop()
        broker.forget()


def values_of(writer: str, count: int = 100) -> list[bytes]:
    return [f"{writer} {number:06} {'lorem ipsum ' * 8}".encode() for number in range(count)]


def create(broker: Broker, topic: str) -> None:
    settings = [word for config in CONFIGS.split(",") for word in ("--config", config)]
    where = ("--bootstrap-server", broker.bootstrap)
    jvm.tool("kafka-topics", *where, "--create", "--topic", topic, "--partitions", "2", *settings)


def fill(broker: Broker, topic: str, writer: str) -> list[bytes]:
    """Writes with every codec; returns the records."""
    written: list[bytes] = []
    for codec in CODECS:
        values = values_of(f"{writer} {codec}")
        CLIENT.produce(broker.bootstrap, topic, values, Kind(codec, idempotent=codec != "none"))
        written += values
    return written


def described(broker: Broker, topic: str) -> tuple[str, ...]:
    """Returns a topic's id, partition count and configs, according to kafka-topics."""
    output = jvm.tool("kafka-topics", "--bootstrap-server", broker.bootstrap, "--describe", "--topic", topic)
    match = re.search(r"TopicId: (\S+)\s+PartitionCount: (\d+).*Configs: (\S+)", output)
    assert match, output
    return match[1], match[2], *sorted(match[3].split(","))


def contents(broker: Broker, topic: str, count: int) -> list[bytes]:
    return CLIENT.consume(broker.bootstrap, topic, 0, count)


@pytest.mark.parametrize(("first", "second"), [(Odradek, ApacheKafka), (ApacheKafka, Odradek)])
def test_a_directory_goes_to_the_other_broker_and_comes_back(
    open_with: Open, first: type[Odradek] | type[ApacheKafka], second: type[Odradek] | type[ApacheKafka]
) -> None:
    broker = open_with(first)
    create(broker, "moved")
    written = fill(broker, "moved", "first")
    before = described(broker, "moved")
    cluster = jvm.tool("kafka-cluster", "cluster-id", "--bootstrap-server", broker.bootstrap)

    broker = open_with(second)
    assert jvm.tool("kafka-cluster", "cluster-id", "--bootstrap-server", broker.bootstrap) == cluster
    assert described(broker, "moved") == before
    assert contents(broker, "moved", len(written)) == written
    written += fill(broker, "moved", "second")
    create(broker, "added")
    added = fill(broker, "added", "second")
    after = described(broker, "added")

    broker = open_with(first)
    assert described(broker, "moved") == before
    assert described(broker, "added") == after
    assert contents(broker, "moved", len(written)) == written
    assert contents(broker, "added", len(added)) == added
    jvm.tool("kafka-topics", "--bootstrap-server", broker.bootstrap, "--delete", "--topic", "added")

    broker = open_with(second)
    assert "added" not in jvm.tool("kafka-topics", "--bootstrap-server", broker.bootstrap, "--list").splitlines()
    assert contents(broker, "moved", len(written)) == written


def test_an_idempotent_producer_goes_on_in_the_other_broker(open_with: Open) -> None:
    from confluent_kafka import Producer

    odradek = open_with(Odradek)
    create(odradek, "sequence")
    settings = {"bootstrap.servers": odradek.bootstrap, "enable.idempotence": True, "linger.ms": 5}
    producer = Producer(settings)
    for value in values_of("one"):
        producer.produce("sequence", value, partition=0)
    assert producer.flush(30) == 0

    apache = open_with(ApacheKafka)
    output = jvm.tool(
        "kafka-transactions", "--bootstrap-server", apache.bootstrap,
        "describe-producers", "--topic", "sequence", "--partition", "0",
    )  # fmt: skip
    columns = dict(zip(*(line.split() for line in output.splitlines()[:2]), strict=False))
    assert columns["LastSequence"] == "99"


def test_kafka_dump_log_decodes_the_metadata_log(open_with: Open, tmp_path: Path) -> None:
    odradek = open_with(Odradek)
    create(odradek, "told")
    odradek.stop()
    log = tmp_path / "data" / "__cluster_metadata-0" / f"{0:020}.log"
    dumped = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(log))
    types = set(re.findall(r'"type":"(\w+)"', dumped))
    assert {"FEATURE_LEVEL_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"} <= types
    assert '"name":"told"' in dumped
    assert "isvalid: false" not in dumped
    assert "Skipping" not in dumped


def test_a_directory_formatted_for_4_3_moves_between_versions(open_with: Open, tmp_path: Path) -> None:
    data = tmp_path / "data"
    properties = ApacheKafka(data).write_properties()
    data.mkdir()
    run(jvm.command_of("kafka-storage", "format", "-t", CLUSTER_ID, "-c", properties, "--release-version", "4.3"))
    broker = open_with(ApacheKafka, APACHE_TOOLS)
    create(broker, "moved")
    written = fill(broker, "moved", "first")
    for kind, version in ((Odradek, ""), (ApacheKafka, APACHE_KAFKA), (ApacheKafka, APACHE_TOOLS)):
        broker = open_with(kind, version)
        assert contents(broker, "moved", len(written)) == written
        written += fill(broker, "moved", f"{kind.__name__} {version}")


def test_kafka_4_3_rejects_a_directory_of_4_4(open_with: Open) -> None:
    open_with(Odradek)
    # Its controller and its metadata loader read the same record in threads of their own. The first of them to fail
    # ends the process, often before the other one has logged its reason.
    reasons = "No MetadataVersion with feature level 33|featureLevel=33.*only supports versions 7-30"
    with pytest.raises(AssertionError, match=reasons):
        open_with(ApacheKafka, APACHE_TOOLS)
