"""Compares how Apache Kafka and Odradek open the same data directories without a part of their metadata."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.clients.confluent import Confluent

pytestmark = pytest.mark.odradek_only

METADATA = "__cluster_metadata-0"
TOPICS = [f"topic-{n}" for n in range(6)]
"""Topics with one partition each; each of the two log directories has three."""
ASIDE = {"00000000000000000021.torn": b"torn", "set-aside-1.reason.kept": b"because\n"} | {
    f"set-aside-1.{0:020d}.log.kept": b"records"
}


class Served(NamedTuple):
    """The topics in the metadata, those that have a leader, and the folders that were marked as strays."""

    topics: int
    led: int
    strays: int


Opened = Served | str
"""The topics of a broker that starts, or a part of the error if it doesn't."""


class Case(NamedTuple):
    """A damage to two log directories, and its effect."""

    damage: Callable[[Path], None]
    apache: Opened
    odradek: Opened


class OdradekOfTwo(Odradek):
    """Odradek with both log directories."""

    def command(self) -> list[str]:
        words = super().command()
        at = words.index("--data")
        return [*words[:at], *words[at + 2 :], "--set", f"log.dirs={log_dirs(self.data)}"]


def log_dirs(data: Path) -> str:
    return f"{data}/first,{data}/second"


def one_bit_of_a_topic(data: Path) -> None:
    (file,) = (data / "first" / METADATA).glob("*.log")
    content = bytearray(file.read_bytes())
    content[content.index(b"topic-3")] ^= 1
    file.write_bytes(content)


def no_metadata_log(data: Path) -> None:
    shutil.rmtree(data / "first" / METADATA)


def no_properties(data: Path) -> None:
    for directory in ("first", "second"):
        (data / directory / "meta.properties").unlink()


def no_properties_in_the_second(data: Path) -> None:
    (data / "second" / "meta.properties").unlink()


def files_set_aside(data: Path) -> None:
    for folder in folders(data):
        for name, content in ASIDE.items():
            (folder / name).write_bytes(content)


CASES = (
    Case(one_bit_of_a_topic, Served(3, 3, 3), "whole batches follow"),
    Case(no_metadata_log, Served(0, 0, 6), "shows that this broker was registered at offset"),
    Case(no_properties, "No readable meta.properties files found", "meta.properties is missing"),
    Case(no_properties_in_the_second, "No `meta.properties` found in ", "meta.properties is missing"),
    Case(files_set_aside, Served(6, 6, 0), Served(6, 6, 0)),
)


def folders(data: Path) -> list[Path]:
    return [data / "first" / METADATA, *data.glob("*/topic-*")]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directories of an Apache Kafka broker that was stopped cleanly."""
    data = tmp_path_factory.mktemp("filled") / "data"
    apache = ApacheKafka(data, {"log.dirs": log_dirs(data)})
    apache.start()
    for topic in TOPICS:
        Confluent().create(apache.bootstrap, topic, 1)
    apache.stop()
    apache.forget()
    return data


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[ApacheKafka, Odradek]]:
    """Yields brokers on directories that don't exist yet."""
    data = tmp_path / "apache"
    pair = ApacheKafka(data, {"log.dirs": log_dirs(data)}, formatted=True), OdradekOfTwo(tmp_path / "odradek")
    yield pair
    for broker in pair:
        broker.forget()


def opened(broker: Broker, data: Path) -> Opened:
    try:
        broker.start()
    except AssertionError as refused:
        return str(refused)
    topics = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30).topics
    leaders = [topics[name].partitions[0].leader for name in TOPICS if name in topics]
    broker.stop()
    return Served(len(leaders), sum(leader == 1 for leader in leaders), len(list(data.glob("*/*-stray"))))


def is_as(outcome: Opened, expected: Opened) -> bool:
    return expected in outcome if isinstance(outcome, str) and isinstance(expected, str) else outcome == expected


@pytest.mark.parametrize("case", CASES, ids=[case.damage.__name__ for case in CASES])
def test_both_open_the_same_damaged_directories(filled: Path, brokers: tuple[ApacheKafka, Odradek], case: Case) -> None:
    apache, odradek = brokers
    openings: tuple[tuple[ApacheKafka | Odradek, Opened], ...] = (apache, case.apache), (odradek, case.odradek)
    for broker, expected in openings:
        shutil.copytree(filled, broker.data)
        case.damage(broker.data)
        outcome = opened(broker, broker.data)
        assert is_as(outcome, expected), outcome
        if case.damage is files_set_aside:
            for folder in folders(broker.data):
                assert {name: (folder / name).read_bytes() for name in ASIDE} == ASIDE
