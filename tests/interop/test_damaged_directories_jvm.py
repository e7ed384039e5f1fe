"""Compares what Odradek and Apache Kafka serve and keep of the same damaged directory."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.clients.confluent import Confluent

pytestmark = pytest.mark.odradek_only

TOPIC = "orders"
RECORDS = 100
VALUE = b"x" * 30_000
"""The value of a record, one per batch: a partition's three segments have 34, 34 and 32 of them."""
SEGMENT = {"log.segment.bytes": str(1 << 20)}
FLIPPED = 1 << 24
"""Distance by which the flipped bit moves a base offset."""


class Served(NamedTuple):
    """The records of a partition that a consumer gets, from the beginning to the end or the first error, and the end
    offset."""

    records: int
    end_offset: int


Damage = Callable[[list[Path]], None]


def batch_size(file: Path) -> int:
    return 12 + int.from_bytes(file.read_bytes()[8:12])


def change(file: Path, at: int, mask: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= mask
    file.write_bytes(content)


def cut(file: Path, batches: int, torn: int = 0) -> None:
    """Cuts the file after this number of batches, and some bytes."""
    file.write_bytes(file.read_bytes()[: batches * batch_size(file) + torn])


def is_cut_at_a_batch(files: list[Path]) -> None:
    cut(files[1], 17)


def is_gone(files: list[Path]) -> None:
    files[1].unlink()


def has_a_flipped_bit(files: list[Path]) -> None:
    change(files[1], 17 * batch_size(files[1]) + 1000, 1)


def has_a_flipped_base_offset(files: list[Path]) -> None:
    change(files[1], 17 * batch_size(files[1]) + 4, 1)


def ends_at_a_flipped_base_offset(files: list[Path]) -> None:
    change(files[2], 31 * batch_size(files[2]) + 4, 1)


def ends_early(files: list[Path]) -> None:
    cut(files[2], 20)


def ends_torn(files: list[Path]) -> None:
    cut(files[2], 20, torn=500)


class Case(NamedTuple):
    """A damage, and the records that each broker serves afterwards."""

    damage: Damage
    odradek: Served
    repaired: int
    """Records that Odradek serves after `odradek log repair --restore`."""
    apache: Served


KILLED = (
    Case(is_cut_at_a_batch, Served(51, 51), 83, Served(83, 100)),
    Case(is_gone, Served(34, 34), 66, Served(66, 100)),
    Case(has_a_flipped_bit, Served(51, 51), 99, Served(51, 51)),
    Case(has_a_flipped_base_offset, Served(51, 51), 99, Served(34, 34)),
    Case(ends_at_a_flipped_base_offset, Served(99, 99), 99, Served(100, 100 + FLIPPED)),
    Case(ends_torn, Served(88, 88), 88, Served(88, 88)),
)
STOPPED = (
    Case(ends_early, Served(88, 88), 88, Served(68, 68)),
    Case(ends_torn, Served(88, 88), 88, Served(68, 68)),
    Case(ends_at_a_flipped_base_offset, Served(99, 99), 99, Served(100, 100 + FLIPPED)),
)


def fill(broker: Broker, partitions: int) -> None:
    Confluent().create(broker.bootstrap, TOPIC, partitions)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "acks": "all"})
    for partition in range(partitions):
        for _ in range(RECORDS):
            producer.produce(TOPIC, VALUE, partition=partition)
            producer.poll(0)
        assert producer.flush(60) == 0


def damage(data: Path, cases: tuple[Case, ...]) -> None:
    for partition, case in enumerate(cases):
        files = sorted((data / f"{TOPIC}-{partition}").glob("*.log"))
        assert [int(file.stem) for file in files] == [0, 34, 68]
        case.damage(files)


def served(broker: Broker, partition: int) -> Served:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    records = 0
    while (message := consumer.poll(30)) is not None and message.error() is None:
        records += 1
    end_offset = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), 30)[1]
    consumer.close()
    return Served(records, end_offset)


def all_served(broker: Broker, cases: tuple[Case, ...]) -> list[Served]:
    return [served(broker, partition) for partition in range(len(cases))]


@pytest.mark.parametrize("cases", [KILLED, STOPPED], ids=["killed", "stopped"])
def test_both_open_the_same_damaged_directory(tmp_path: Path, cases: tuple[Case, ...]) -> None:
    data, copied = tmp_path / "apache", tmp_path / "odradek"
    apache = ApacheKafka(data, SEGMENT)
    apache.start()
    fill(apache, len(cases))
    if cases is KILLED:
        apache.kill9()
    else:
        apache.stop()
    damage(data, cases)
    shutil.copytree(data, copied)

    apache.start()
    by_apache = all_served(apache, cases)
    apache.stop()
    odradek = Odradek(copied, SEGMENT)
    odradek.start()
    by_odradek = all_served(odradek, cases)
    assert odradek.stop() == 0
    repair = [Odradek.program, "log", "repair", "--restore", str(copied)]
    subprocess.run(repair, check=False, stdout=subprocess.PIPE)
    odradek.start()
    repaired = [outcome.records for outcome in all_served(odradek, cases)]
    assert odradek.stop() == 0

    names = [case.damage.__name__ for case in cases]
    expected = {name: (case.odradek, case.repaired, case.apache) for name, case in zip(names, cases, strict=True)}
    outcome = zip(by_odradek, repaired, by_apache, strict=True)
    assert dict(zip(names, outcome, strict=True)) == expected
    apache.forget()
    odradek.forget()


def test_apache_leaves_what_is_set_aside_where_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    odradek = Odradek(data, SEGMENT)
    odradek.start()
    fill(odradek, 1)
    odradek.kill9()
    is_gone(sorted((data / f"{TOPIC}-0").glob("*.log")))
    odradek.start()
    assert odradek.stop() == 0
    aside = {file.name: file.read_bytes() for file in (data / f"{TOPIC}-0").glob("set-aside-*")}
    assert len(aside) == 2

    apache = ApacheKafka(data, SEGMENT, formatted=True)
    apache.start()
    assert served(apache, 0) == Served(34, 34)
    apache.stop()
    assert {file.name: file.read_bytes() for file in (data / f"{TOPIC}-0").glob("set-aside-*")} == aside
    apache.forget()
    odradek.forget()
