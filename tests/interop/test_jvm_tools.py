"""Tests Apache Kafka's own command line tools, unchanged, with a real broker."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from protocol.api_key import OWN, ApiKey
from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.driver import CODECS, Kind

VALUES = [f"value {number:04} {'x' * 100}".encode() for number in range(50)]


class Tools:
    """The tools, with the broker's address."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, name: str, *arguments: str, stdin: str = "") -> str:
        return jvm.tool(name, "--bootstrap-server", self.bootstrap, *arguments, stdin=stdin)

    def consume(self, topic: str, *arguments: str) -> list[str]:
        where = ("--topic", topic, "--partition", "0", "--timeout-ms", "30000")
        return self("kafka-console-consumer", *where, *arguments).splitlines()


@pytest.fixture
def tools(shared_broker: Broker) -> Tools:
    return Tools(shared_broker.bootstrap)


@pytest.fixture
def filled(shared_broker: Broker, topic: str) -> str:
    """Creates a topic of one partition with VALUES."""
    client = Confluent()
    client.create(shared_broker.bootstrap, topic)
    client.produce(shared_broker.bootstrap, topic, VALUES, Kind())
    return topic


def test_kafka_topics_creates_lists_describes_grows_and_deletes(tools: Tools, topic: str) -> None:
    created = tools(
        "kafka-topics", "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=360000"
    )
    assert f"Created topic {topic}." in created
    assert topic in tools("kafka-topics", "--list").splitlines()
    described = tools("kafka-topics", "--describe", "--topic", topic)
    assert re.search(rf"Topic: {topic}\s+TopicId: \S{{22}}\s+PartitionCount: 3\s+ReplicationFactor: 1", described)
    assert "retention.ms=360000" in described
    assert len(re.findall(r"Partition: \d+\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)) == 3
    tools("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert "PartitionCount: 5" in tools("kafka-topics", "--describe", "--topic", topic)
    tools("kafka-topics", "--delete", "--topic", topic)
    assert topic not in tools("kafka-topics", "--list").splitlines()


def test_kafka_topics_tells_that_a_topic_exists(tools: Tools, topic: str) -> None:
    tools("kafka-topics", "--create", "--topic", topic)
    with pytest.raises(AssertionError, match=f"Topic '{topic}' already exists"):
        tools("kafka-topics", "--create", "--topic", topic)


@pytest.mark.parametrize("codec", CODECS)
def test_the_console_producer_writes_and_the_console_consumer_reads(tools: Tools, topic: str, codec: str) -> None:
    lines = [f"line {number}" for number in range(100)]
    text = "".join(f"{line}\n" for line in lines)
    tools("kafka-console-producer", "--topic", topic, "--compression-codec", codec, stdin=text)
    assert tools.consume(topic, "--offset", "earliest", "--max-messages", "100") == lines


def test_the_console_consumer_prints_keys_and_headers_from_an_offset(tools: Tools, topic: str) -> None:
    properties = ("parse.key=true", "key.separator=:", "parse.headers=true")
    flags = [word for one in properties for word in ("--reader-property", one)]
    text = "".join(f"h:{number}\tk{number}:v{number}\n" for number in range(5))
    tools("kafka-console-producer", "--topic", topic, *flags, stdin=text)
    shown = [
        word
        for one in ("print.key", "print.headers", "print.offset", "print.partition")
        for word in ("--formatter-property", f"{one}=true")
    ]
    read = tools.consume(topic, "--offset", "3", "--max-messages", "2", *shown)
    assert read == [
        "Partition:0\tOffset:3\th:3\tk3\tv3",
        "Partition:0\tOffset:4\th:4\tk4\tv4",
    ]


def test_kafka_producer_perf_test_has_every_record_acknowledged(shared_broker: Broker, topic: str) -> None:
    load = ("--topic", topic, "--num-records", "20000", "--record-size", "500", "--throughput", "-1")
    output = jvm.tool("kafka-producer-perf-test", *load, "--bootstrap-server", shared_broker.bootstrap)
    assert "20000 records sent" in output
    ends = jvm.tool("kafka-get-offsets", "--bootstrap-server", shared_broker.bootstrap, "--topic", topic)
    assert ends.strip() == f"{topic}:0:20000"


def test_kafka_configs_sets_shows_and_removes_a_topic_config(tools: Tools, filled: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", filled)
    tools("kafka-configs", *entity, "--alter", "--add-config", "max.message.bytes=2000,cleanup.policy=[compact,delete]")
    described = tools("kafka-configs", *entity, "--describe")
    assert "max.message.bytes=2000 sensitive=false" in described
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000" in described
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in described
    assert "cleanup.policy=compact,delete" in described
    tools("kafka-configs", *entity, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tools("kafka-configs", *entity, "--describe")
    everything = tools("kafka-configs", *entity, "--describe", "--all")
    assert "max.message.bytes=1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}" in everything


def test_kafka_configs_refuses_a_value_that_is_none(tools: Tools, filled: str) -> None:
    with pytest.raises(AssertionError, match=r"Invalid value .* for configuration retention.ms"):
        tools(
            "kafka-configs",
            "--entity-type",
            "topics",
            "--entity-name",
            filled,
            "--alter",
            "--add-config",
            "retention.ms=long",
        )


def test_kafka_configs_sets_a_broker_config(tools: Tools) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    tools("kafka-configs", *entity, "--alter", "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2 sensitive=false" in tools("kafka-configs", *entity, "--describe")
    tools("kafka-configs", *entity, "--alter", "--delete-config", "log.cleaner.threads")
    assert "log.cleaner.threads" not in tools("kafka-configs", *entity, "--describe")


def test_kafka_configs_sets_and_shows_quotas_and_credentials_of_a_user(tools: Tools) -> None:
    user = ("--entity-type", "users", "--entity-name", "alice")
    for added in ("SCRAM-SHA-256=[iterations=8192,password=secret]", "producer_byte_rate=1000000"):
        done = tools("kafka-configs", "--alter", *user, "--add-config", added)
        assert "Completed updating config for user alice." in done
    shown = tools("kafka-configs", "--describe", "--entity-type", "users")
    assert "Quota configs for user-principal 'alice' are producer_byte_rate=1000000.0" in shown
    assert "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192" in shown
    tools("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM" not in tools("kafka-configs", "--describe", *user)


def test_kafka_get_offsets_knows_the_special_times(tools: Tools, topic: str) -> None:
    start_ms = int(time.time() * 1000) - 10_000
    records = [(start_ms + after_ms, b"one") for after_ms in (0, 5, 9, 7, 3)]
    client = Confluent()
    client.create(tools.bootstrap, topic)
    client.produce_at(tools.bootstrap, topic, records, Kind())
    for when, offset in {"-1": 5, "latest": 5, "earliest": 0, "max-timestamp": 2, str(start_ms + 6): 2}.items():
        output = tools("kafka-get-offsets", "--topic", topic, "--time", when).strip()
        assert output == f"{topic}:0:{offset}", when


def test_kafka_delete_records_moves_the_log_start(tools: Tools, filled: str, tmp_path: Path) -> None:
    plan = tmp_path / "offsets.json"
    partition = {"topic": filled, "partition": 0, "offset": 20}
    plan.write_text(json.dumps({"partitions": [partition], "version": 1}))
    output = tools("kafka-delete-records", "--offset-json-file", str(plan))
    assert f"partition: {filled}-0\tlow_watermark: 20" in output
    assert tools("kafka-get-offsets", "--topic", filled, "--time", "earliest").strip() == f"{filled}:0:20"
    assert tools.consume(filled, "--offset", "earliest", "--max-messages", "1") == [VALUES[20].decode()]


def test_kafka_log_dirs_tells_the_size_on_disk(tools: Tools, shared_broker: Broker, filled: str) -> None:
    output = tools("kafka-log-dirs", "--describe", "--topic-list", filled).splitlines()
    (broker,) = json.loads(next(line for line in output if line.startswith("{")))["brokers"]
    (directory,) = broker["logDirs"]
    size = sum(file.stat().st_size for file in (shared_broker.data / f"{filled}-0").glob("*.log"))
    assert broker["broker"] == 1
    assert directory["logDir"] == str(shared_broker.data)
    assert directory["error"] is None
    assert directory["partitions"] == [{"partition": f"{filled}-0", "size": size, "offsetLag": 0, "isFuture": False}]


def test_kafka_dump_log_reads_the_segments_and_indexes(broker: Broker, topic: str) -> None:
    create = ("--create", "--topic", topic, "--config", "index.interval.bytes=100")
    Tools(broker.bootstrap)("kafka-topics", *create)
    for start in range(0, len(VALUES), 10):
        Confluent().produce(broker.bootstrap, topic, VALUES[start : start + 10], Kind())
    broker.stop()
    segment = broker.data / f"{topic}-0" / f"{0:020}"
    dumped = jvm.tool("kafka-dump-log", "--files", f"{segment}.log", "--print-data-log")
    assert re.findall(r"payload: (value .*)", dumped) == [value.decode() for value in VALUES]
    assert "isvalid: true" in dumped
    assert "isvalid: false" not in dumped
    checked = jvm.tool("kafka-dump-log", "--files", f"{segment}.index,{segment}.timeindex", "--index-sanity-check")
    assert checked.count("passed sanity check") == 2, checked


def test_kafka_broker_api_versions_understands_every_api(tools: Tools, shared_broker: Broker) -> None:
    output = tools("kafka-broker-api-versions")
    assert f"{shared_broker.bootstrap} (id: 1 rack: null" in output
    assert re.search(r"Produce\(0\): 0 to 1\d \[usable: 13\]", output)
    assert re.search(r"Fetch\(1\): \d to 1\d \[usable: 18\]", output)
    newer = {ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, ApiKey.UNREGISTER_CONTROLLER}  # of Kafka 4.4
    assert {int(key) for key in re.findall(r"UNKNOWN\((\d+)\)", output)} == newer | OWN


def test_kafka_cluster_tells_the_cluster_id(tools: Tools, shared_broker: Broker) -> None:
    written = re.search(r"^cluster\.id=(\S+)$", (shared_broker.data / "meta.properties").read_text(), re.MULTILINE)
    assert written
    output = jvm.tool("kafka-cluster", "cluster-id", "--bootstrap-server", shared_broker.bootstrap)
    assert output.strip() == f"Cluster ID: {written[1]}"


def test_kafka_features_tells_the_finalized_ones(tools: Tools) -> None:
    assert re.search(
        r"Feature: metadata.version\s+SupportedMinVersion: \S+\s+.*FinalizedVersionLevel: \S+",
        tools("kafka-features", "describe"),
    )


def test_kafka_metadata_quorum_tells_the_leader(tools: Tools) -> None:
    output = tools("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId:\s+1\n", output)
    assert re.search(r"MaxFollowerLag:\s+0\n", output)


def test_kafka_leader_election_finds_the_preferred_leader_leading(tools: Tools, filled: str) -> None:
    output = tools("kafka-leader-election", "--election-type", "preferred", "--topic", filled, "--partition", "0")
    assert f"Valid replica already elected for partitions {filled}-0" in output


def test_kafka_reassign_partitions_lists_none(tools: Tools) -> None:
    assert "No partition reassignments found." in tools("kafka-reassign-partitions", "--list")


def test_kafka_transactions_describes_the_producers_of_a_partition(tools: Tools, topic: str) -> None:
    tools("kafka-console-producer", "--topic", topic, "--sync", stdin="one\ntwo\n")
    output = tools("kafka-transactions", "describe-producers", "--topic", topic, "--partition", "0").splitlines()
    columns = dict(zip(output[0].split(), output[1].split(), strict=False))
    assert columns["ProducerEpoch"] == "0"
    assert columns["LastSequence"] == "1"
