"""Tests groups of the consumer protocol (KIP-848): librdkafka and the Java client, patterns, static members, groups
that change protocol while they run, kills of the broker, and the tools' output."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop import jvm
from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.clients.confluent import Confluent
from tests.interop.members import (
    BY_NAME,
    CONSUMER_PROTOCOL,
    COUNT,
    PARTITIONS,
    Flavour,
    Member,
    everything_seen,
    is_shared,
    seen_by,
    share_and_give_up,
    static_consumer,
    write,
)
from tests.waiting import wait_until

CLIENT = Confluent()
CONSUMER = {flavour.name.split("-")[0]: flavour for flavour in CONSUMER_PROTOCOL}

Join = Callable[..., Member]

FAST = {
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "200",
}


@pytest.fixture
def properties() -> dict[str, str]:
    return FAST


@pytest.fixture
def join(broker: Broker, topic: str, tmp_path: Path) -> Iterator[Join]:
    """Adds a member to the group of the test, which has the topic's name."""
    joined: list[Member] = []

    def start(flavour: Flavour, what: str = topic) -> Member:
        joined.append(Member(flavour, broker.bootstrap, what, topic, tmp_path / f"{flavour.name}.log"))
        return joined[-1]

    yield start
    for member in joined:
        member.kill()


@pytest.fixture
def group(broker: Broker, topic: str) -> str:
    """Returns the name of the group and of its topic, which exists."""
    CLIENT.create(broker.bootstrap, topic, partitions=PARTITIONS)
    return topic


def tell(broker: Broker, *arguments: str) -> str:
    return jvm.tool("kafka-consumer-groups", "--bootstrap-server", broker.bootstrap, *arguments)


def state_of(broker: Broker, group: str) -> dict[str, str]:
    """Returns the columns of `--describe --state --verbose`."""
    lines = [line for line in tell(broker, "--describe", "--state", "--verbose", "--group", group).splitlines() if line]
    # "COORDINATOR (ID)", and what stands below it, is one column in two words.
    columns, values = (re.sub(r"\s+(\(\w+\))", r"\1", line).split() for line in lines[-2:])
    return dict(zip(columns, values, strict=True))


@pytest.mark.parametrize("kind", list(CONSUMER))
def test_three_consumers_share_a_topic_and_give_it_up_in_turn(
    kind: str, broker: Broker, group: str, join: Join
) -> None:
    share_and_give_up(broker, group, lambda: join(CONSUMER[kind]))


def test_clients_of_both_kinds_are_one_group(broker: Broker, group: str, join: Join) -> None:
    members = [join(flavour) for flavour in (*CONSUMER_PROTOCOL, *CONSUMER_PROTOCOL)]
    is_shared(members)
    write(broker, group)
    everything_seen(members)


@pytest.mark.parametrize("kind", list(CONSUMER))
def test_a_pattern_takes_in_topics_as_they_come(kind: str, broker: Broker, group: str, join: Join) -> None:
    member = join(CONSUMER[kind], f"^{group}.*")
    is_shared([member])
    write(broker, group)
    everything_seen([member])
    CLIENT.create(broker.bootstrap, f"{group}-later", partitions=PARTITIONS)
    write(broker, f"{group}-later")
    expected = dict.fromkeys(itertools.product(range(PARTITIONS), range(COUNT)), 2)
    wait_until(lambda: seen_by([member]) == Counter(expected), lambda: (member.owned, member.errors))


@pytest.mark.parametrize("kind", list(CONSUMER))
def test_new_partitions_are_read(kind: str, broker: Broker, topic: str, join: Join) -> None:
    CLIENT.create(broker.bootstrap, topic, partitions=1)
    member = join(CONSUMER[kind])
    wait_until(lambda: member.owned == [0], lambda: (member.owned, member.errors))
    where = ("--bootstrap-server", broker.bootstrap)
    jvm.tool("kafka-topics", *where, "--alter", "--topic", topic, "--partitions", str(PARTITIONS))
    is_shared([member])
    write(broker, topic)
    everything_seen([member])


@pytest.mark.parametrize("kind", list(CONSUMER))
def test_a_static_member_that_restarts_in_time_takes_its_partitions_again(
    kind: str, broker: Broker, group: str, join: Join
) -> None:
    of_group = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", group)
    jvm.tool("kafka-configs", *of_group, "--alter", "--add-config", "consumer.session.timeout.ms=30000")
    write(broker, group)
    members = [join(static_consumer(kind, "one")), join(static_consumer(kind, "two"))]
    is_shared(members)
    everything_seen(members)
    changes = len(members[0].assignments)
    before = members[1].owned
    members[1].leave()  # for a while: a static member will be back
    again = join(static_consumer(kind, "two"))
    wait_until(lambda: again.owned == before, lambda: (again.owned, before, again.errors))
    assert len(members[0].assignments) == changes, "the other member went through a rebalance"
    write(broker, group)
    everything_seen([*members, again], 2 * COUNT)


@pytest.mark.parametrize("kind", list(CONSUMER))
def test_consumers_go_on_when_the_broker_is_killed_in_a_rebalance(
    kind: str, broker: Broker, group: str, join: Join
) -> None:
    write(broker, group)
    members = [join(CONSUMER[kind]), join(CONSUMER[kind])]
    is_shared(members)
    everything_seen(members)
    assignments = sum(len(member.assignments) for member in members)
    members.append(join(CONSUMER[kind]))
    wait_until(lambda: sum(len(member.assignments) for member in members) > assignments, lambda: "no rebalance")
    broker.kill9()
    broker.start()
    write(broker, group)
    everything_seen(members, 2 * COUNT)
    is_shared(members)


@pytest.mark.parametrize("kind", list(CONSUMER))
@pytest.mark.parametrize("classic", ["confluent", "java-4.3.1-cooperative"])
def test_a_group_moves_to_the_consumer_protocol_and_back_while_it_runs(
    kind: str, classic: str, broker: Broker, group: str, join: Join
) -> None:
    """librdkafka's cooperative assignor is left out: it adds its own data to assignments, which an upgrade would lose,
    so both brokers reject it."""
    write(broker, group)
    members = [join(BY_NAME[classic]), join(BY_NAME[classic])]
    is_shared(members)
    everything_seen(members)
    written = COUNT
    running = list(members)
    for flavour in (CONSUMER[kind], CONSUMER[kind], BY_NAME[classic], BY_NAME[classic]):  # a roll there, and back
        members.append(join(flavour))
        running.append(members[-1])
        is_shared(running)
        running.pop(0).leave()
        is_shared(running)
        write(broker, group)
        written += COUNT
        everything_seen(members, written)
    assert state_of(broker, group)["STATE"] == "Stable"
    assert group in tell(broker, "--list", "--type", "classic").split()


def test_the_tools_describe_a_consumer_group(broker: Broker, group: str, join: Join) -> None:
    members = [join(CONSUMER["java"]), join(static_consumer("confluent", "one"))]
    is_shared(members)
    write(broker, group)
    everything_seen(members)
    state = state_of(broker, group)
    assert (state["STATE"], state["#MEMBERS"], state["ASSIGNMENT-STRATEGY"]) == ("Stable", "2", "uniform")
    assert state["GROUP-EPOCH"] == state["TARGET-ASSIGNMENT-EPOCH"] == "3"
    output = tell(broker, "--describe", "--members", "--verbose", "--group", group)
    assert output.count(f"{group}:") >= 2
    assert re.search(r"\bone\b", output)
    offsets = tell(broker, "--describe", "--group", group)
    assert len(re.findall(rf"{COUNT}\s+{COUNT}\s+0\s", offsets)) == PARTITIONS
    assert group in tell(broker, "--list", "--type", "consumer").split()
    assert re.search(rf"{group}\s+Consumer\s+Stable", tell(broker, "--list", "--type", "--state"))
    assert "not empty" in tell(broker, "--delete", "--group", group)
    for member in members:
        member.leave()
    wait_until(lambda: state_of(broker, group)["STATE"] == "Empty", lambda: state_of(broker, group))
    assert "was successful" in tell(broker, "--delete", "--group", group)
    assert group not in tell(broker, "--list").split()


def test_the_console_consumer_reads_in_a_consumer_group(broker: Broker, group: str) -> None:
    write(broker, group)
    read = jvm.tool(
        "kafka-console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", group, "--group", group,
        "--from-beginning", "--max-messages", str(PARTITIONS * COUNT), "--timeout-ms", "20000",
        "--consumer-property", "group.protocol=consumer",
    )  # fmt: skip
    lines = [line for line in read.splitlines() if re.fullmatch(r"\d \d+", line)]
    assert sorted(lines) == sorted(f"{p} {n}" for p, n in itertools.product(range(PARTITIONS), range(COUNT)))


@pytest.mark.odradek_only
def test_a_group_with_its_members_moves_to_apache_kafka_and_back(tmp_path: Path, topic: str) -> None:
    data = tmp_path / "data"
    odradek = Odradek(data, FAST)
    odradek.start()
    CLIENT.create(odradek.bootstrap, topic, partitions=PARTITIONS)
    member = Member(CONSUMER["confluent"], odradek.bootstrap, f"^{topic}", topic, tmp_path / "member.log")
    is_shared([member])
    odradek.stop()
    member.kill()
    long = {"group.consumer.session.timeout.ms": "600000", "group.consumer.max.session.timeout.ms": "600000"}
    patient = {**FAST, **long}
    apache = ApacheKafka(data, patient, formatted=True)
    apache.start()
    there = state_of(apache, topic)
    assert (there["STATE"], there["#MEMBERS"], there["GROUP-EPOCH"]) == ("Stable", "1", "2")
    second = Member(CONSUMER["java"], apache.bootstrap, f"^{topic}", topic, tmp_path / "second.log")
    # The pattern is matched beside the heartbeats, and the epoch moves once it is.
    wait_until(
        lambda: (state_of(apache, topic)["#MEMBERS"], state_of(apache, topic)["GROUP-EPOCH"]) == ("2", "3"),
        lambda: state_of(apache, topic),
    )
    apache.stop()
    second.kill()
    odradek.properties = patient
    odradek.start()
    back = state_of(odradek, topic)
    assert (back["#MEMBERS"], back["GROUP-EPOCH"]) == ("2", "3")
    for one in (odradek, apache):
        one.forget()


def test_kafka_dump_log_decodes_the_records(broker: Broker, group: str, join: Join) -> None:
    member = join(CONSUMER["confluent"], f"^{group}")
    is_shared([member])
    member.leave()
    broker.stop()
    dumped = ""
    for log in broker.data.glob("__consumer_offsets-*/*.log"):
        if log.stat().st_size:
            dumped += jvm.tool("kafka-dump-log", "--offsets-decoder", "--files", str(log))
    keys = re.findall(r"key: (\{.*?\}) payload: (.*)", dumped)
    types = {str(json.loads(key)["type"]) for key, _ in keys}
    assert {"3", "5", "6", "7", "8", "16"} <= types
    assert "isvalid: false" not in dumped
