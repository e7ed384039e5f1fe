"""The command line against Odradek and Apache Kafka: the same words, the same output, but for names and times."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from commands.main import main
from commands.table import find
from tests.interop.brokers import ApacheKafka, Broker, Odradek

pytestmark = pytest.mark.odradek_only  # it starts both

Rows = list[dict[str, object]]
VARYING = {"id"}
"""Keys whose values differ from cluster to cluster."""


class Outcome(NamedTuple):
    """The outcome of a command, as seen from outside."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> Rows:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    folder = tmp_path_factory.mktemp("commands")
    both: list[Broker] = [Odradek(folder / "odradek"), ApacheKafka(folder / "apache")]
    for broker in both:
        broker.start()
    yield both
    for broker in both:
        broker.stop()
        broker.forget()


def call(capsys: pytest.CaptureFixture[str], bootstrap: str, words: tuple[str, ...]) -> Outcome:
    command = find([*words, "-b", bootstrap])
    assert command is not None
    capsys.readouterr()
    status = main(*command)
    return Outcome(status, *capsys.readouterr())


def without_varying(value: object) -> object:
    """Returns a value without what differs from cluster to cluster, errors without the brokers' own words."""
    if isinstance(value, dict):
        return {key: without_varying(item) for key, item in value.items() if key not in VARYING and key != "error"}
    if isinstance(value, list):
        return [without_varying(item) for item in value]
    return value.split(":")[0] if isinstance(value, str) and value.split(":")[0].isupper() else value


@pytest.fixture
def run(brokers: list[Broker], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on both; returns what it did on Odradek once it is the same on Apache Kafka."""

    def run_on_both(*words: str, status: int = 0) -> Outcome:
        ours, theirs = (call(capsys, broker.bootstrap, words) for broker in brokers)
        assert ours.status == theirs.status == status, (ours, theirs)
        assert without_varying(ours.rows) == without_varying(theirs.rows)
        return ours

    return run_on_both


def test_a_topic_from_its_creation_to_its_end(run: Run, topic: str) -> None:
    assert run("topic", "create", topic, "-p", "2", "-r", "1", "-c", "retention.ms=1000").rows == [
        {"topic": topic, "partitions": 2, "replicas": 1, "result": "created"}
    ]
    run("topic", "create", topic, status=1)
    run("topic", "create", topic, "--if-not-exists")
    run("topic", "create", f"{topic}-dry", "--dry-run", "-p", "1")
    (described,) = run("topic", "describe", topic).rows
    assert described["configs"] == {"retention.ms": "1000"}
    run("topic", "alter", topic, "--unset", "retention.ms", "-c", "max.message.bytes=1000")
    assert run("topic", "describe", topic).rows[0]["configs"] == {"max.message.bytes": "1000"}
    run("topic", "alter", topic, "-c", "no.such.config=1", status=1)
    run("topic", "grow", topic, "--to", "4", "--dry-run")
    run("topic", "grow", topic, "--by", "1")
    run("topic", "grow", topic, "--to", "1", status=1)
    run("topic", "trim", topic, "--to", "end", "--yes")
    assert [row["topic"] for row in run("topic", "list").rows if row["topic"] == topic] == [topic]
    run("topic", "delete", topic, "--yes")
    run("topic", "delete", topic, "--yes", status=1)
    run("topic", "describe", topic, status=1)


def test_replicas_are_placed_by_hand(run: Run, topic: str) -> None:
    run("topic", "create", topic, "--assign", "0:1", "--assign", "1:1")
    run("topic", "create", f"{topic}-wrong", "--assign", "0:7", status=1)


def test_configs_with_their_sources(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "1")
    run("config", "set", "topic", topic, "retention.ms=5000", "--append", "cleanup.policy=compact")
    assert {row["config"]: (row["value"], row["source"]) for row in run("config", "describe", "topic", topic).rows} == {
        "cleanup.policy": ("delete,compact", "topic"),
        "retention.ms": ("5000", "topic"),
    }
    run("config", "set", "topic", topic, "--subtract", "cleanup.policy=delete", "--unset", "retention.ms")
    run("config", "describe", "topic", topic, "--match", "retention")
    run("config", "set", "broker", "all", "log.cleaner.threads=2", "--dry-run")
    run("config", "set", "broker", "1", "broker.id=5", status=1)
    run("config", "describe", "topic", "no-such-topic", status=1)


def test_one_config_is_printed_bare(brokers: list[Broker], capsys: pytest.CaptureFixture[str], topic: str) -> None:
    for broker in brokers:
        call(capsys, broker.bootstrap, ("topic", "create", topic, "-c", "retention.ms=77"))
        assert call(capsys, broker.bootstrap, ("config", "get", "topic", topic, "retention.ms")).out == "77\n"
        assert call(capsys, broker.bootstrap, ("config", "get", "topic", topic, "no.such")).status == 2


def test_nothing_is_destroyed_unless_asked_twice(run: Run, topic: str) -> None:
    run("topic", "create", topic)
    assert "--yes" in run("topic", "delete", topic, status=2).err
    assert "--yes" in run("topic", "trim", topic, "--to", "end", status=2).err
    run("topic", "describe", topic)


def test_a_command_without_a_broker_says_where_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "127.0.0.1:1", ("topic", "list"))
    assert outcome.status == 3
    assert "127.0.0.1:1" in outcome.err
    assert "--bootstrap" in outcome.err
