"""Tests tools and console consumers of Kafka 0.8 to 1.1 on Odradek with zookeeper.connect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.brokers import Odradek
from tests.interop.zookeeper import ZooKeeper, old_tool, produce, started, until, znodes

pytestmark = [pytest.mark.zookeeper, pytest.mark.odradek_only]

TOPICS = "kafka.admin.TopicCommand"
VERSIONS = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "1.1.1")
WITH_OFFSET_CHECKER = VERSIONS[:3]
IN_CI = (VERSIONS[0], VERSIONS[-1])
"""The versions with ConsumerOffsetChecker, which 1.0 has removed."""


def in_ci(versions: tuple[str, ...]) -> list[object]:
    """Returns the parameters of a test; those of the oldest and the newest version are in CI's slice."""
    return [pytest.param(version, marks=pytest.mark.ci if version in IN_CI else ()) for version in versions]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Odradek]:
    zookeeper = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "zookeeper")
    zookeeper.start()
    broker = started(tmp_path_factory.mktemp("broker") / "data", f"{zookeeper.address}/kafka")
    yield broker
    assert broker.stop() == 0
    broker.forget()
    zookeeper.forget()


@pytest.fixture
def connect(broker: Odradek) -> str:
    return broker.properties["zookeeper.connect"]


@pytest.mark.parametrize("version", VERSIONS)
def test_tools_create_alter_and_delete_topics(broker: Odradek, connect: str, version: str) -> None:
    name = f"topic-{version}"

    def topics(*arguments: str) -> str:
        return old_tool(version, TOPICS, "--zookeeper", connect, "--topic", name, *arguments)

    with znodes(connect) as client:
        topics("--create", "--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=60000")
        until(lambda: client.exists(f"/brokers/topics/{name}/partitions/1/state"), [broker])
        topics("--alter", "--partitions", "3", "--config", "retention.ms=70000")
        until(lambda: client.exists(f"/brokers/topics/{name}/partitions/2/state"), [broker])
        described = topics("--describe")
        assert "PartitionCount:3" in described
        assert "retention.ms=70000" in described
        assert described.count("Leader: 1") == 3
        produce(broker, name, range(3))
        topics("--delete")
        until(lambda: not client.exists(f"/admin/delete_topics/{name}"), [broker])
        assert not client.exists(f"/brokers/topics/{name}")
        assert not client.exists(f"/config/topics/{name}")


@pytest.mark.parametrize("version", in_ci(VERSIONS))
def test_a_console_consumer_reads_all_and_goes_on_where_it_was(
    broker: Odradek, connect: str, tmp_path: Path, version: str
) -> None:
    topic, group = f"read-{version}", f"group-{version}"
    config = tmp_path / "consumer.properties"
    config.write_text(f"group.id={group}\noffsets.storage=zookeeper\n")
    options = ("--create", "--topic", topic, "--partitions", "1", "--replication-factor", "1")
    old_tool(version, TOPICS, "--zookeeper", connect, *options)
    reading = ("--zookeeper", connect, "--topic", topic, "--consumer.config", str(config), "--max-messages", "100")
    with znodes(connect) as client:
        until(lambda: client.exists(f"/brokers/topics/{topic}/partitions/0/state"), [broker])
        # Whatever its file says, it begins at the end of a log that it has no offset of, unless it is told otherwise;
        # and it refuses to be told so where it has one.
        for values, where in ((range(100), ["--from-beginning"]), (range(100, 200), [])):
            produce(broker, topic, values)
            printed = old_tool(version, "kafka.tools.ConsoleConsumer", *reading, *where)
            assert [int(line) for line in printed.splitlines() if line.strip().isdigit()] == list(values)
            assert client.get(f"/consumers/{group}/offsets/{topic}/0")[0] == b"%d" % values.stop


@pytest.mark.parametrize("version", in_ci(WITH_OFFSET_CHECKER))
def test_the_offset_checker_shows_lag_and_owner(broker: Odradek, connect: str, version: str) -> None:
    topic, group = f"checked-{version}", f"checked-group-{version}"
    produce(broker, topic, range(10))
    with znodes(connect) as client:
        until(lambda: client.exists(f"/brokers/topics/{topic}/partitions/0/state"), [broker])
        client.create(f"/consumers/{group}/offsets/{topic}/0", b"7", makepath=True)
        client.create(f"/consumers/{group}/owners/{topic}/0", b"somebody-0", makepath=True)
    where = ("--zookeeper", connect, "--group", group, "--topic", topic)
    printed = old_tool(version, "kafka.tools.ConsumerOffsetChecker", *where)
    (line,) = [line.split() for line in printed.splitlines() if line.startswith(f"{group} ")]
    assert line[1:] == [topic, "0", "7", "10", "3", "somebody-0"]


def test_offsets_are_exported_and_imported(connect: str, tmp_path: Path) -> None:
    dump = tmp_path / "offsets"
    with znodes(connect) as client:
        client.create("/consumers/moved/offsets/read/0", b"7", makepath=True)
        export = ("--zkconnect", connect, "--group", "moved", "--output-file", str(dump))
        old_tool("0.8.2.2", "kafka.tools.ExportZkOffsets", *export)
        assert dump.read_text().strip().endswith(":7")
        client.set("/consumers/moved/offsets/read/0", b"1")
        old_tool("0.8.2.2", "kafka.tools.ImportZkOffsets", "--zkconnect", connect, "--input-file", str(dump))
        assert client.get("/consumers/moved/offsets/read/0")[0] == b"7"
