"""Tests that commands answer what can be answered on three brokers while a broker is dead or frozen, and not fenced."""

from __future__ import annotations

import json
import stat
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.testing import Cluster
from odradek.testing.fixtures import cluster_fixture
from odradek.testing.served import ServedBroker
from tests.interop.brokers import Odradek
from tests.interop.commanding import UNLIMITED, Outcome, call

pytestmark = [pytest.mark.odradek_only, pytest.mark.commands]

SOON_S = 60
LOST = 3
"""The broker that a test kills or freezes. It leads partition 2 of each topic, and coordinates the group `lost`."""
UNFENCED = {
    "broker.session.timeout.ms": 3_600_000,  # a dead broker stays in the metadata
    "offsets.commit.timeout.ms": 60_000,
    "replica.lag.time.max.ms": 2000,  # commits wait this long for the lost broker
    "offsets.topic.num.partitions": 3,
    "share.coordinator.state.topic.num.partitions": 3,
}

three = cluster_fixture(3, "module", UNFENCED)
Command = Callable[..., Outcome]


class Lost(NamedTuple):
    """A cluster with a lost broker, and groups by the state of their coordinator."""

    cluster: Cluster
    served: str
    """A group on a serving coordinator, with offsets of all partitions."""
    lost: str
    """A group whose coordinator is lost."""
    shared: str
    """A share group on a serving coordinator."""


def write(cluster: Cluster, topic: str) -> None:
    writer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for partition in range(3):
        for number in range(5):
            writer.produce(topic, str(number), partition=partition)
    assert writer.flush(SOON_S) == 0


def read(cluster: Cluster, group: str, topic: str) -> None:
    """Commits the offset after the second record of each partition."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False}
    reader = Consumer({**settings, "auto.offset.reset": "earliest"})
    reader.commit(offsets=[TopicPartition(topic, index, 2) for index in range(3)], asynchronous=False)
    reader.close()


@pytest.fixture(scope="module")
def groups(three: Cluster) -> Lost:
    three.create_topic("orders", partitions=3)
    three.wait_for_isr("orders", timeout_s=SOON_S)
    write(three, "orders")
    coordinators: dict[bool, str] = {}
    for number in range(30):
        if len(coordinators) == 2:
            break
        read(three, f"group-{number}", "orders")
        coordinators.setdefault(three.coordinator_of(f"group-{number}") is three.broker(LOST), f"group-{number}")
    return Lost(three, coordinators[False], coordinators[True], share(three, "orders"))


def share(cluster: Cluster, topic: str) -> str:
    """Returns a share group that has read some records of each partition, and whose coordinator is not lost."""
    for number in range(30):
        group = f"shared-{number}"
        for words in (
            ("config", "set", "group", group, "share.auto.offset.reset=earliest"),
            ("share", "consume", group, topic, "-n", "15", "--timeout", "10s"),
        ):
            subprocess.run([Odradek.program, *words, "-b", cluster.bootstrap], check=True, stdout=subprocess.DEVNULL)
        if cluster.coordinator_of(group) is not cluster.broker(LOST):
            return group
    raise AssertionError("the lost broker coordinates all groups")


@pytest.fixture(scope="module", params=["frozen", "dead"])
def outage(request: pytest.FixtureRequest, groups: Lost) -> Iterator[Lost]:
    """The cluster while a broker is frozen, then while it is dead. It can't come back while it isn't fenced."""
    broker: ServedBroker = groups.cluster.broker(LOST)
    assert sorted(groups.cluster.leader("orders", partition) for partition in range(3)) == [1, 2, 3]
    if request.param == "dead":
        broker.kill()
        yield groups
        return
    with broker.paused():
        yield groups


@pytest.fixture
def command(outage: Lost, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with the lost broker first among the bootstrap addresses, and without a useful request timeout."""
    addresses = [outage.cluster.broker(node).bootstrap for node in (LOST, 1, 2)]

    def run(*words: str, status: int) -> Outcome:
        outcome = call(capsys, ",".join(addresses), (*words, *UNLIMITED))
        assert outcome.status == status, outcome
        return outcome

    return run


def lost_partition(outage: Lost) -> int:
    return next(partition for partition in range(3) if outage.cluster.leader("orders", partition) == LOST)


def with_errors(rows: object) -> list[int]:
    """Returns the partitions of the rows that have an error."""
    assert isinstance(rows, list)
    return [row["partition"] for row in rows if "error" in row]


@pytest.mark.ci
def test_topics_are_listed_and_described_without_the_offsets_of_the_lost_leader(outage: Lost, command: Command) -> None:
    assert [row["topic"] for row in command("topic", "list", status=0).rows] == ["orders"]
    lost = lost_partition(outage)
    (described,) = command("topic", "describe", "orders", status=1).rows
    rows = described["partitions"]
    assert isinstance(rows, list)
    assert with_errors(rows) == [lost]
    assert [row["end"] for row in rows] == [None if index == lost else 5 for index in range(3)]
    assert f"broker {LOST}" in rows[lost]["error"]


@pytest.mark.ci
def test_a_partition_with_a_leader_is_consumed(outage: Lost, command: Command) -> None:
    lost = lost_partition(outage)
    for partition in {0, 1, 2} - {lost}:
        consumed = command("consume", "orders", "-p", str(partition), "-e", "-o", "json", status=0)
        assert len(consumed.rows) == 5
    everything = command("consume", "orders", "-e", "-o", "json", status=1)
    assert len(everything.rows) == 10
    assert f"orders-{lost}" in everything.err
    assert command("consume", "orders", "-p", str(lost), "-e", status=1).rows == []


def test_a_group_is_described_and_reset_except_for_the_lost_partition(outage: Lost, command: Command) -> None:
    lost = lost_partition(outage)
    (described,) = command("group", "describe", outage.served, status=1).rows
    assert with_errors(described["partitions"]) == [lost]
    assert described["lag"] is None
    rows = command("group", "reset", outage.served, "--to", "start", "--yes", status=1).rows
    assert with_errors(rows) == [lost]
    assert [row["new"] for row in rows] == [None if index == lost else 0 for index in range(3)]
    command("group", "reset", outage.served, "--shift", "2", "--yes", status=1)


@pytest.mark.ci
def test_groups_of_the_lost_coordinator_are_rows_with_its_error(outage: Lost, command: Command) -> None:
    rows = command("group", "describe", outage.served, outage.lost, status=1).rows
    assert [row["group"] for row in rows] == [outage.served, outage.lost]
    assert f"broker {LOST}" in str(rows[1]["error"])
    assert command("group", "members", outage.served, status=0).rows == []
    listed = command("group", "list", status=1).rows
    assert outage.served in [row["group"] for row in listed]
    assert [row["coordinator"] for row in listed if row["group"] is None] == [LOST]


def test_the_lag_of_a_share_group_is_unknown_if_that_of_a_partition_is(outage: Lost, command: Command) -> None:
    (described,) = command("share", "describe", outage.shared, status=1).rows
    rows = described["partitions"]
    assert isinstance(rows, list)
    assert len(rows) == 3
    assert None in [row["lag"] for row in rows]
    assert described["lag"] is None
    (sample,) = command("top", "-n", "1", status=1).rows
    groups = sample["groups"]
    assert isinstance(groups, list)
    assert [row.get("lag") for row in groups if row["group"] == outage.shared] == [None]


def test_a_share_group_is_reset_except_for_what_does_not_answer(outage: Lost, command: Command) -> None:
    rows = command("share", "reset", outage.shared, "--to", "start", "--yes", status=1).rows
    assert len(rows) == 3
    assert lost_partition(outage) in with_errors(rows)
    reset = [row for row in rows if "error" not in row]
    assert {(row["new"], row["result"]) for row in reset} == {(0, "set")}


def test_the_cluster_is_described_with_the_error_of_the_lost_broker(command: Command) -> None:
    (described,) = command("cluster", "describe", status=1).rows
    brokers = described["brokers"]
    assert isinstance(brokers, list)
    assert [row["broker"] for row in brokers if "error" in row] == [LOST]
    assert all(row["bytes"] > 0 for row in brokers if "error" not in row)


def test_top_shows_what_is_known(outage: Lost, command: Command) -> None:
    (sample,) = command("top", "-n", "1", status=1).rows
    assert sample["topics"] == [
        {
            "topic": "orders",
            "partitions": 3,
            "records": None,
            "records_per_s": None,
            "error": sample["topics"][0]["error"],  # type: ignore[index]
        }
    ]
    groups = sample["groups"]
    assert isinstance(groups, list)
    assert {row["group"]: row.get("lag") for row in groups}[outage.served] is None
    assert [row["error"] for row in groups if row["group"] is None]


def test_other_brokers_answer_for_acls_and_configs_and_make_changes(outage: Lost, command: Command) -> None:
    assert "SECURITY_DISABLED" in command("acl", "list", status=1).err
    command("config", "describe", "topic", "orders", status=0)
    command("config", "describe", "broker", "1", status=0)
    assert f"broker {LOST}" in command("config", "describe", "broker", str(LOST), status=3).err
    command("topic", "alter", "orders", "-c", "retention.ms=600000000", status=0)
    command("cluster", "quorum", status=0)


def test_a_command_that_knows_only_the_lost_broker_says_why_nothing_answers(
    outage: Lost, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(capsys, outage.cluster.broker(LOST).bootstrap, ("topic", "list", *UNLIMITED))
    assert outcome.status == 3
    assert outcome.err.count("\n") == 1


def test_a_bundle_has_what_can_be_read_and_the_errors(outage: Lost, command: Command, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("starting\nsasl.password=hunter2\n")
    archive = tmp_path / "bundle.zip"
    command("cluster", "bundle", str(archive), "--log", str(log), "--metrics", "http://127.0.0.1:1/metrics", status=1)
    with zipfile.ZipFile(archive) as file:
        parts = {name: file.read(name).decode() for name in file.namelist()}
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    errors = json.loads(parts["errors.json"])
    assert {f"configs_of_broker_{LOST}", "metrics of http://127.0.0.1:1/metrics"} < errors.keys()
    assert "configs_of_broker_1.json" in parts
    assert parts["log-1.txt"] == "starting\nsasl.password=(secret)\n"
    topics = [json.loads(line) for line in parts["topics.json"].splitlines()]
    orders = [row for row in topics if row["topic"] == "orders"]
    assert [row["partition"] for row in orders if "error" in row] == [lost_partition(outage)]
    assert {"cluster.json", "features.json", "groups.json", "doctor.json", "quorum.json"} < parts.keys()
