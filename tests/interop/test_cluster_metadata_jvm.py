"""Compares the metadata log with Apache Kafka's own: formatting, decoding, and a directory that is used by both in
turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.metadata.log import log_config
from broker.metadata.snapshots import SnapshotRules
from coordinator.cluster.record import decode_batches
from coordinator.cluster.snapshot import SnapshotId, find_snapshots, read_snapshot
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.types import uuid_to_text
from storage.disk import OsDisk
from tests.broker.metadata.harness import MetadataHarness
from tests.coordinator.cluster.given import creatable
from tests.interop import jvm
from tests.interop.brokers import ApacheKafka, cluster_id
from tests.waiting import wait_until

pytestmark = pytest.mark.odradek_only

CONTROLLER = "127.0.0.1:9093"
DISK = OsDisk()
Said = tuple[str, object]


def format_with_kafka(data: Path) -> None:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": CONTROLLER,
        "listeners": f"PLAINTEXT://127.0.0.1:9092,CONTROLLER://{CONTROLLER}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
    }
    properties = data.with_name("format.properties")
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    jvm.tool("kafka-storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", str(properties), "--standalone")


def dumped(data: Path) -> Iterator[Said]:
    """Yields the records of the metadata log that kafka-dump-log prints: kind and content."""
    log = data / "__cluster_metadata-0" / f"{0:020}.log"
    output = jvm.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(log))
    assert "isvalid: false" not in output
    for line in output.splitlines():
        if match := re.search(r"payload: (.*)$", line):
            payload = json.loads(match[1])
            yield payload["type"], payload["data"]
        elif match := re.search(r"headerKeys: \[\] (\w+):? (\{.*)$", line):
            yield match[1], json.loads(match[2])


def topics_of(records: list[Said]) -> dict[str, str]:
    """Returns the ids of the topics that the records create and don't remove."""
    topics: dict[str, str] = {}
    for kind, data in records:
        assert isinstance(data, dict)
        if kind == "TOPIC_RECORD":
            topics[data["name"]] = data["topicId"]
        elif kind == "REMOVE_TOPIC_RECORD":
            topics = {name: topic_id for name, topic_id in topics.items() if topic_id != data["topicId"]}
    return topics


def topics_told(kafka: ApacheKafka) -> dict[str, tuple[str, int, str]]:
    """Returns each topic's id, partitions and configs, according to kafka-topics; every partition has a leader."""
    output = jvm.tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--describe")
    assert "Leader: none" not in output
    rows = re.findall(r"Topic: (\S+)\s+TopicId: (\S+)\s+PartitionCount: (\d+).*Configs: (\S*)", output)
    return {name: (topic_id, int(count), configs) for name, topic_id, count, configs in rows}


def topics_known(world: MetadataHarness) -> dict[str, tuple[str, int, str]]:
    """Returns the same, as we read it from the directory."""
    image = world.open(register=False).image
    return {
        topic.name: (
            uuid_to_text(topic.topic_id),
            len(topic.partitions),
            ",".join(f"{name}={value}" for name, value in sorted(image.topic_configs(topic.name).items())),
        )
        for topic in image.topics()
    }


def latest_snapshot(world: MetadataHarness) -> SnapshotId:
    *_, latest = find_snapshots(file.name for file in world.folder().iterdir())
    return latest


def end_offset(world: MetadataHarness) -> int:
    """Returns the offset after the last record in the first segment of the metadata log."""
    *_, last = decode_batches((world.folder() / f"{0:020}.log").read_bytes())
    return last.last_offset + 1


async def fill(world: MetadataHarness) -> None:
    """Creates topics and all other records that a session of ours writes."""
    cluster = world.open()
    topics = [creatable("orders", 3, 1, {"retention.ms": "864000000"}), creatable("pay.ments", 1, 1), creatable("gone")]
    await cluster.controller.submit(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    await cluster.controller.submit(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1000), DeleteTopicsResponse)
    await cluster.node.allocate_producer_ids()
    world.stop(cluster)


def test_a_directory_is_formatted_as_kafka_storage_formats_it(tmp_path: Path) -> None:
    """kafka-storage of Kafka 4.4 writes into one file what older versions write into two (KIP-1170)."""
    theirs, world = tmp_path / "theirs", MetadataHarness(tmp_path, ["ours"])
    theirs.mkdir()
    format_with_kafka(theirs)
    cluster = world.open(register=False)
    ours = tmp_path / "ours"
    name = f"__cluster_metadata-0/{0:020}-{0:010}.checkpoint"
    mine, other = (read_snapshot(DISK, str(folder / name)) for folder in (ours, theirs))
    assert read_snapshot(DISK, str(ours / "bootstrap.checkpoint")).records == other.records
    assert (mine.records, len(mine.quorum)) == ([], len(other.quorum))
    quorum = repr(mine.quorum[2]).replace(repr(cluster.node.directory_ids[str(ours)]), "…")
    assert quorum == re.sub(r"voter_directory_id=b(['\"]).*?\1,", "voter_directory_id=…,", repr(other.quorum[2]))


async def test_kafka_dump_log_reads_every_record(tmp_path: Path) -> None:
    world = MetadataHarness(tmp_path)
    await fill(world)
    records = list(dumped(tmp_path / "data"))
    assert [kind for kind, _ in records[:4]] == [
        "LeaderChange",
        "KRaftVersion",
        "KRaftVoters",
        "BEGIN_TRANSACTION_RECORD",
    ]
    kinds = {kind for kind, _ in records}
    assert kinds >= {
        "FEATURE_LEVEL_RECORD",
        "CONFIG_RECORD",
        "END_TRANSACTION_RECORD",
        "REGISTER_CONTROLLER_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "PARTITION_CHANGE_RECORD",
        "REMOVE_TOPIC_RECORD",
        "PRODUCER_IDS_RECORD",
    }
    ids = {name: topic_id for name, (topic_id, _, _) in topics_known(world).items()}
    assert topics_of(records) == ids


async def test_kafka_opens_our_directory_and_we_open_it_again(tmp_path: Path) -> None:
    world = MetadataHarness(tmp_path)
    await fill(world)
    before = topics_known(world)
    world.stop(world.open())
    kafka = ApacheKafka(tmp_path / "data", formatted=True)
    kafka.start()
    try:
        described = topics_told(kafka)
        assert {name: one[:2] for name, one in described.items()} == {name: one[:2] for name, one in before.items()}
        assert "retention.ms=864000000" in described["orders"][2]
        where = ("--bootstrap-server", kafka.bootstrap)
        jvm.tool("kafka-topics", *where, "--create", "--topic", "theirs", "--partitions", "2")
        jvm.tool("kafka-topics", *where, "--alter", "--topic", "orders", "--partitions", "5")
    finally:
        kafka.stop()
    after = topics_known(world)
    assert {name: after[name][1] for name in after} == {"orders": 5, "pay.ments": 1, "theirs": 2}
    assert world.open().image.cluster_id == cluster_id(tmp_path / "data")


async def test_a_log_whose_beginning_is_only_in_a_snapshot_of_kafka_is_read(tmp_path: Path) -> None:
    settings = {"metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.max.idle.interval.ms": "20"}
    kafka = ApacheKafka(tmp_path / "data", settings)
    kafka.start()
    world = MetadataHarness(tmp_path)
    try:
        where = ("--bootstrap-server", kafka.bootstrap)
        for topic in ("first", "second"):
            jvm.tool("kafka-topics", *where, "--create", "--topic", topic, "--partitions", "7")
        jvm.tool("kafka-topics", *where, "--delete", "--topic", "second")
        before = topics_told(kafka)
        end = end_offset(world)
        wait_until(lambda: latest_snapshot(world).offset >= end)  # the records that idle time adds fill a snapshot
    finally:
        kafka.stop()
    latest = latest_snapshot(world)
    for file in (*world.folder().glob(f"{0:020}.*"), *world.folder().glob("*.snapshot")):
        file.unlink()
    (world.folder() / f"{latest.offset:020}.log").touch()  # as Kafka's log begins after a snapshot that it has fetched
    after = topics_known(world)
    assert {name: one[:2] for name, one in after.items()} == {name: one[:2] for name, one in before.items()}
    cluster = world.open()
    await cluster.controller.submit(CreateTopicsRequest(topics=[creatable("third")]), CreateTopicsResponse)
    world.stop(cluster)
    again = ApacheKafka(tmp_path / "data", settings, formatted=True)
    again.start()
    try:
        assert set(topics_told(again)) == {"first", "third"}
    finally:
        again.stop()


async def test_a_log_that_we_cut_behind_a_snapshot_is_opened_by_kafka(tmp_path: Path) -> None:
    rules = SnapshotRules(max_record_bytes=1_500, retention_bytes=6_000)
    world = MetadataHarness(tmp_path)
    metadata = world.open(rules=rules, config=log_config(segment_bytes=5_000))
    for at in range(30):
        await metadata.controller.submit(
            CreateTopicsRequest(topics=[creatable(f"topic-{at}", 2, 1)]), CreateTopicsResponse
        )
    await metadata.controller.submit(
        DeleteTopicsRequest(topic_names=["topic-7"], timeout_ms=1000), DeleteTopicsResponse
    )
    assert metadata.metadata_log.start_offset > 0
    world.stop(metadata)
    before = topics_known(world)
    world.stop(world.open())
    kafka = ApacheKafka(tmp_path / "data", formatted=True)
    kafka.start()
    try:
        assert {name: one[:2] for name, one in topics_told(kafka).items()} == {
            name: one[:2] for name, one in before.items()
        }
    finally:
        kafka.stop()
    assert topics_known(world).keys() == before.keys()
