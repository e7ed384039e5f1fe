"""Tests Apache Kafka's own tools on groups, and directories with groups that move between Odradek and Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop import jvm
from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.clients.confluent import Confluent
from tests.interop.members import BY_NAME, Flavour, Member
from tests.interop.members import long_session as member_of_long_session
from tests.waiting import wait_until

CLIENT = Confluent()
COUNT = 30


def groups(broker: Broker, *arguments: str) -> str:
    return jvm.tool("kafka-consumer-groups", "--bootstrap-server", broker.bootstrap, *arguments)


def rows(printed: str) -> list[list[str]]:
    """Returns a table's rows, without its header and the tool's other lines."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    header = next(number for number, words in enumerate(lines) if words[0] == "GROUP")
    return lines[header + 1 :]


def write(broker: Broker, topic: str, partitions: int = 2) -> None:
    CLIENT.create(broker.bootstrap, topic, partitions=partitions)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition in range(partitions):
        for number in range(COUNT):
            producer.produce(topic, str(number).encode(), partition=partition, timestamp=1_000_000 + number * 1000)
    assert not producer.flush(30)


def commit(broker: Broker, group: str, topic: str, offset: int, partitions: int = 2) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(
        offsets=[TopicPartition(topic, partition, offset) for partition in range(partitions)], asynchronous=False
    )
    consumer.close()


@pytest.fixture
def join(tmp_path: Path) -> Iterator[Callable[..., Member]]:
    joined: list[Member] = []

    def start(broker: Broker, topic: str, flavour: Flavour) -> Member:
        joined.append(Member(flavour, broker.bootstrap, topic, topic, tmp_path / "member.log"))
        return joined[-1]

    yield start
    for member in joined:
        member.kill()


def test_groups_are_listed_by_state_and_type(shared_broker: Broker, topic: str, join: Callable[..., Member]) -> None:
    write(shared_broker, topic)
    empty = f"{topic}-empty"
    commit(shared_broker, empty, topic, 3)
    member = join(shared_broker, topic, BY_NAME["confluent"])
    wait_until(lambda: member.owned == [0, 1], lambda: member.owned)
    assert {topic, empty} <= set(groups(shared_broker, "--list").split())
    states = {words[0]: words[1] for words in rows(groups(shared_broker, "--list", "--state"))}
    assert (states[topic], states[empty]) == ("Stable", "Empty")
    assert topic not in groups(shared_broker, "--list", "--state", "Empty").split()
    assert {words[1] for words in rows(groups(shared_broker, "--list", "--type"))} == {"Classic"}


def test_a_group_is_described_with_offsets_members_and_state(
    shared_broker: Broker, topic: str, join: Callable[..., Member]
) -> None:
    write(shared_broker, topic)
    member = join(shared_broker, topic, BY_NAME["java-4.3.1"])
    wait_until(lambda: len(member.records) == 2 * COUNT, lambda: len(member.records))
    wait_until(lambda: member.words[-1] == "committed", lambda: member.words[-3:])

    described = rows(groups(shared_broker, "--describe", "--group", topic))
    assert [words[:6] for words in described] == [
        [topic, topic, str(partition), str(COUNT), str(COUNT), "0"] for partition in (0, 1)
    ]
    assert all(words[7] == "/127.0.0.1" for words in described)
    members = rows(groups(shared_broker, "--describe", "--group", topic, "--members", "--verbose"))
    assert [words[4] for words in members] == ["2"]
    assert f"{topic}:0,1" in members[0]
    state = rows(groups(shared_broker, "--describe", "--group", topic, "--state"))
    assert [state[0][0], *state[0][-3:]] == [topic, "range", "Stable", "1"]
    assert "GroupNotEmptyException" in groups(shared_broker, "--delete", "--group", topic)


RESETS = {
    "to-earliest": ([], 0),
    "to-latest": ([], COUNT),
    "to-current": ([], 10),
    "to-offset": (["7"], 7),
    "shift-by": (["-4"], 6),
    "to-datetime": (["1970-01-01T00:16:45.000"], 5),
}


@pytest.mark.parametrize("mode", RESETS)
def test_offsets_are_reset(mode: str, shared_broker: Broker, topic: str) -> None:
    write(shared_broker, topic)
    commit(shared_broker, topic, topic, 10)
    arguments, expected = RESETS[mode]
    reset = ("--reset-offsets", "--group", topic, "--topic", topic, f"--{mode}", *arguments)
    assert [words[3] for words in rows(groups(shared_broker, *reset, "--dry-run"))] == [str(expected)] * 2
    groups(shared_broker, *reset, "--execute")
    assert [words[3] for words in rows(groups(shared_broker, "--describe", "--group", topic))] == [str(expected)] * 2


def test_offsets_are_reset_from_a_file(shared_broker: Broker, topic: str, tmp_path: Path) -> None:
    write(shared_broker, topic)
    commit(shared_broker, topic, topic, 10)
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{topic},0,3\n{topic},1,4\n")
    groups(shared_broker, "--reset-offsets", "--group", topic, "--from-file", str(plan), "--execute")
    described = rows(groups(shared_broker, "--describe", "--group", topic))
    assert sorted((words[2], words[3]) for words in described) == [("0", "3"), ("1", "4")]


def test_offsets_and_groups_are_deleted(shared_broker: Broker, topic: str) -> None:
    write(shared_broker, topic)
    commit(shared_broker, topic, topic, 10)
    deleted = groups(shared_broker, "--delete-offsets", "--group", topic, "--topic", f"{topic}:0")
    assert re.search(rf"{topic}\s+0\s+Successful", deleted)
    assert [words[2] for words in rows(groups(shared_broker, "--describe", "--group", topic))] == ["1"]
    assert "was successful" in groups(shared_broker, "--delete", "--group", topic)
    assert topic not in groups(shared_broker, "--list").split()


@pytest.mark.odradek_only
def test_the_offsets_topic_is_dumped(broker: Broker, topic: str, join: Callable[..., Member]) -> None:
    write(broker, topic)
    member = join(broker, topic, BY_NAME["kafka-python"])
    wait_until(lambda: len(member.records) == 2 * COUNT, lambda: len(member.records))
    member.leave()
    broker.stop()
    segments = [str(segment) for segment in broker.data.glob("__consumer_offsets-*/*.log") if segment.stat().st_size]
    dumped = jvm.tool("kafka-dump-log", "--offsets-decoder", "--deep-iteration", "--files", ",".join(segments))
    assert f'"group":"{topic}","topic":"{topic}","partition":1' in dumped
    assert '"protocolType":"consumer","generation":1,"protocol":"range"' in dumped
    assert f'"leader":"{member_id_in(dumped)}"' in dumped
    assert re.search(r'"generation":[2-9],"protocol":null,"leader":null', dumped), "it may have joined more than once"
    assert "isvalid: false" not in dumped


def member_id_in(dumped: str) -> str:
    match = re.search(r'"memberId":"([^"]+)"', dumped)
    assert match
    return match[1]


def kinds() -> list[object]:
    return [
        pytest.param(Odradek, ApacheKafka, id="from-odradek"),
        pytest.param(ApacheKafka, Odradek, id="from-apache-kafka"),
    ]


@pytest.mark.odradek_only
@pytest.mark.parametrize(("first", "second"), kinds())
def test_a_directory_with_groups_goes_to_the_other_broker_and_comes_back(
    first: type[Odradek] | type[ApacheKafka],
    second: type[Odradek] | type[ApacheKafka],
    tmp_path: Path,
    topic: str,
    join: Callable[..., Member],
) -> None:
    data = tmp_path / "data"
    broker = opened(first, data, formatted=False)
    write(broker, topic)
    commit(broker, f"{topic}-simple", topic, 11)
    member = join(broker, topic, member_of_long_session("kafka-python", "one"))
    wait_until(lambda: len(member.records) == 2 * COUNT, lambda: len(member.records))
    wait_until(lambda: "committed" in member.words, lambda: member.words[-3:])
    member.kill()
    before = state_in_tools(broker, topic)
    assert f"{topic}:0,1" in before[0][0], "the member is not there to be moved"
    for kind in (second, first):
        broker.stop()
        broker.forget()
        broker = opened(kind, data, formatted=True)
        assert state_in_tools(broker, topic) == before
        commit(broker, f"{topic}-by-{kind.__name__}", topic, 5)
        before[2].append([f"{topic}-by-{kind.__name__}", topic])
        before[2].append([f"{topic}-by-{kind.__name__}", topic])
        before[2].sort()
    broker.stop()
    broker.forget()


def opened(kind: type[Odradek] | type[ApacheKafka], data: Path, *, formatted: bool) -> Broker:
    broker: Broker = Odradek(data) if kind is Odradek else ApacheKafka(data, formatted=formatted)
    broker.start()
    return broker


def state_in_tools(broker: Broker, topic: str) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Returns members with their assignments, their group's offsets, and the groups that have offsets of the topic."""
    members = rows(groups(broker, "--describe", "--group", topic, "--members", "--verbose"))
    offsets = rows(groups(broker, "--describe", "--group", topic))
    everything = groups(broker, "--describe", "--all-groups")
    with_offsets = sorted(line.split()[:2] for line in everything.splitlines() if line.startswith(f"{topic}-"))
    return members, offsets, with_offsets
