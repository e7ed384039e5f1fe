"""Tests damaged data and directories that vanish, as stock clients see them: sound data is served, and damage is
reported."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.interop.brokers import Odradek
from tests.interop.clients.confluent import Confluent
from tests.interop.consumed import offset_of, value_of
from tests.waiting import wait_until

pytestmark = pytest.mark.odradek_only

TOPIC = "orders"
VALUE_BYTES = 4_000
RECORDS = 700
"""Records per partition: about 2.8 MB, in three segments."""
NOTICED_WITHIN_S = 60


class Pair(Odradek):
    """A broker with two log directories, `first`, which has the metadata, and `second`."""

    def command(self) -> list[str]:
        words = super().command()
        at = words.index("--data")
        return [*words[:at], *words[at + 2 :], "--set", f"log.dirs={self.data},{self.data.with_name('second')}"]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Yields the pair, with two partitions in each directory."""
    broker = Pair(tmp_path / "first", {"log.segment.bytes": "1048576"})
    broker.start()
    Confluent().create(broker.bootstrap, TOPIC, 4)
    yield broker
    broker.forget()


def partitions_in(broker: Odradek, directory: str) -> list[int]:
    folders = (broker.data.parent / directory).glob(f"{TOPIC}-*")
    return sorted(int(folder.name.rpartition("-")[2]) for folder in folders)


def write(broker: Odradek, partition: int, count: int = RECORDS, timeout_ms: int = 60_000) -> dict[int, bytes]:
    """Writes records, and returns the acknowledged values by offset."""
    acknowledged: dict[int, bytes] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged[offset_of(message)] = value_of(message)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 2, "message.timeout.ms": timeout_ms})
    dice = random.Random(partition)
    for _ in range(count):
        producer.produce(TOPIC, dice.randbytes(VALUE_BYTES), partition=partition, on_delivery=delivered)
        producer.poll(0)
    producer.flush(NOTICED_WITHIN_S + timeout_ms / 1000)
    return acknowledged


def read(broker: Odradek, partition: int, offset: int, count: int) -> tuple[dict[int, bytes], KafkaError | None]:
    """Reads up to `count` records from the offset on, up to the first error."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "unused", "check.crcs": True}
    consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(TOPIC, partition, offset)])
    values: dict[int, bytes] = {}
    deadline = time.monotonic() + 30
    try:
        while len(values) < count and time.monotonic() < deadline:
            for message in consumer.consume(count, timeout=0.2):
                if (error := message.error()) is not None:
                    return values, error
                values[offset_of(message)] = value_of(message)
    finally:
        consumer.close()
    return values, None


def files(broker: Odradek, partition: int, suffix: str) -> list[Path]:
    folder = next(broker.data.parent.glob(f"*/{TOPIC}-{partition}"))
    return sorted(folder.glob(f"*{suffix}"))


def logged(broker: Odradek, event: str) -> list[dict[str, object]]:
    lines = (line for line in broker.log.read_text().splitlines() if line.startswith("{"))
    return [line for line in map(json.loads, lines) if line["event"] == event]


def wait_for(broker: Odradek, event: str) -> dict[str, object]:
    wait_until(lambda: bool(logged(broker, event)), lambda: f"{event!r} was not told", within_s=NOTICED_WITHIN_S)
    return logged(broker, event)[0]


def vanish(directory: Path) -> None:
    """Makes a directory vanish at once, like an unmounted volume; open files can still be written."""
    directory.rename(directory.with_name(f"{directory.name}.gone"))


def overwrite(path: Path, at: int, content: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(content)] = content
    path.write_bytes(data)


def test_what_is_before_and_behind_a_damaged_batch_is_served(pair: Odradek) -> None:
    written = {partition: write(pair, partition) for partition in range(4)}
    assert pair.stop() == 0
    index = files(pair, 0, ".index")[1]
    index.write_bytes(random.Random(1).randbytes(index.stat().st_size))
    overwrite(files(pair, 1, ".log")[1], 0, b"\xff" * 61)  # a header of nonsense
    overwrite(files(pair, 2, ".log")[1], 61 + VALUE_BYTES // 2, b"\x00" * 40)  # in a record
    for directory in ("first", "second"):
        (pair.data.parent / directory / "recovery-point-offset-checkpoint").write_bytes(b"\x00\xff\n")
    pair.start()

    for partition in (0, 3):
        assert read(pair, partition, 0, RECORDS) == (written[partition], None)
    for partition in (1, 2):
        begins, next_begins = (int(path.stem) for path in files(pair, partition, ".log")[1:3])
        values, error = read(pair, partition, 0, RECORDS)
        assert error is not None
        assert values == {offset: value for offset, value in written[partition].items() if offset < begins}
        values, error = read(pair, partition, next_begins, RECORDS - next_begins)
        assert (len(values), error) == (RECORDS - next_begins, None)
    assert len(logged(pair, "problem found at start")) == 2
    (line,) = logged(pair, "batch is damaged")
    assert line["what"] == str(files(pair, 1, ".log")[1])
    assert len(write(pair, 1, 10)) == 10


def test_a_directory_that_vanishes_takes_its_partitions_only_and_the_last_one_the_broker(pair: Odradek) -> None:
    stays, goes = partitions_in(pair, "first")[0], partitions_in(pair, "second")[0]
    written = {partition: write(pair, partition, 20) for partition in (stays, goes)}
    vanish(pair.data.parent / "second")
    assert wait_for(pair, "log directory has failed: offline")["log_dir"] == f"{pair.data.parent}/second"
    assert write(pair, goes, 1, timeout_ms=2_000) == {}
    assert len(write(pair, stays, 20)) == 20
    assert read(pair, stays, 0, 20) == (written[stays], None)
    vanish(pair.data)
    assert pair.wait(NOTICED_WITHIN_S) == 1
    assert len(logged(pair, "the directory of the metadata log has failed; stopping")) == 1
