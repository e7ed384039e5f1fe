"""Tests logs that Odradek has compacted, read by Apache Kafka's kafka-dump-log and its broker."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from protocol.records.compression import Compression
from storage.log import Log
from tests.interop import jvm
from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.test_log_jvm import COMPLAINTS, dump
from tests.storage.cleaning import compacted, latest, put, run_cleaner
from tests.storage.writing import NOW_MS, PID, end_transaction, headers, open_log
from tests.waiting import wait_until

pytestmark = pytest.mark.odradek_only

TOPIC = "compacted"
CONFIGS = ("cleanup.policy=compact", "segment.bytes=1048576", "min.cleanable.dirty.ratio=0.01")
KEYS, RECORDS = 500, 12_000
CLEAN_TO = re.compile(r'"clean_to": (\d+)')
State = dict[str, str]


def fill(log: Log, at: int) -> None:
    """Writes repeated keys, in batches of each codec, by producers and in committed and aborted transactions."""
    for n in range(40):
        codec = list(Compression)[n % len(Compression)]
        put(log, (f"k{n % 7}", f"v{at}-{n}"), (f"k{n % 5}", None if n % 9 == 0 else f"w{at}-{n}"), compression=codec)
    sequence = 3 * at
    put(log, ("k1", f"aborted {at}"), pid=PID, sequence=sequence, transactional=True)
    end_transaction(log, commit=False)
    put(log, ("k2", f"committed {at}"), pid=PID, sequence=sequence + 1, transactional=True)
    end_transaction(log, commit=True)
    put(log, ("k3", f"plain {at}"), pid=PID, sequence=sequence + 2)
    put(log, ("k3", f"after it {at}"))  # which leaves the producer's last batch without records


def test_kafka_dump_log_has_nothing_to_say_against_cleaned_segments(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    log = open_log(directory, compacted(segment_bytes=2000, index_interval_bytes=200, delete_retention_ms=1000))
    for round_number in range(3):
        fill(log, round_number)
        log.roll(NOW_MS)
        assert run_cleaner(log, NOW_MS + 600 * round_number) is not None
        output = dump(directory)
        assert [line for line in output.splitlines() if COMPLAINTS.search(line) and "isvalid: true" not in line] == []
        assert "isvalid: false" not in output
    assert any(header.delete_horizon_ms for header in headers(log))
    assert any(header.records_count == 0 for header in headers(log))
    printed = re.findall(r"^\| offset: \d+ .*? key: (k\d) payload: (.*)$", output, re.M)
    assert dict(printed) == {key: value for key, value in latest(log).items() if key.startswith("k")}


def produce(broker: Broker) -> State:
    """Produces, and returns the values that a reader of the topic must have at the end."""
    state: State = {}
    dice = Random(1)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "compression.type": "lz4", "enable.idempotence": True, "linger.ms": 5}
    )
    for n in range(RECORDS):
        key, value = f"k{n * 7919 % KEYS}", f"value {n} {dice.randbytes(150).hex()}"
        if n % 11 == 0:
            state.pop(key, None)
            producer.produce(TOPIC, key=key, value=None)
        else:
            state[key] = value
            producer.produce(TOPIC, key=key, value=value)
        if n % 1000 == 0:
            producer.flush(30)
    assert producer.flush(30) == 0
    transactional = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "compression.type": "gzip"}
    )
    transactional.init_transactions(30)
    for commit in (False, True):
        transactional.begin_transaction()
        for n in range(0, KEYS, 3):
            transactional.produce(TOPIC, key=f"k{n}", value=f"{commit} {n}")
            if commit:
                state[f"k{n}"] = f"{commit} {n}"
        assert not transactional.flush(30)  # an abort drops the records that are not sent yet
        transactional.commit_transaction(30) if commit else transactional.abort_transaction(30)
    for n in range(6):  # so that all of the above is in segments that may be cleaned
        state["filler"] = f"{n} {dice.randbytes(300_000).hex()}"
        producer.produce(TOPIC, key="filler", value=state["filler"])
        assert producer.flush(30) == 0
    return state


def end_offset(consumer: Consumer, where: TopicPartition) -> int | None:
    """Returns the end offset; None while the partition has no leader, because Apache Kafka serves clients before it
    leads its partitions."""
    try:
        return int(consumer.get_watermark_offsets(where, timeout=30)[1])
    except KafkaException as error:
        if error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION:
            return None
        raise


def read(broker: Broker) -> tuple[State, int]:
    """Returns key → value, and the number of records read."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "any", "isolation.level": "read_committed"})
    where = TopicPartition(TOPIC, 0)
    wait_until(lambda: end_offset(consumer, where) is not None, lambda: "the partition has no leader")
    end = end_offset(consumer, where)
    assert end is not None
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    state: State = {}
    count = 0
    while consumer.position([where])[0].offset < end:
        message = consumer.poll(10)
        assert message is not None, f"nothing after {count} records"
        assert message.error() is None, message.error()
        count += 1
        key = (message.key() or b"").decode()
        state.pop(key, None)
        if message.value() is not None:
            state[key] = (message.value() or b"").decode()
    consumer.close()
    return state, count


def wait_until_cleaned(broker: Odradek) -> None:
    """Waits until the cleaner has passed all records: it may have begun while records were still produced."""

    def cleaned_to() -> int:
        return max((int(offset) for offset in CLEAN_TO.findall(broker.tail(1 << 20))), default=0)

    wait_until(lambda: cleaned_to() >= RECORDS, lambda: f"was cleaned to {cleaned_to()}", within_s=60)


def test_apache_kafka_finds_the_same_keys_and_values_in_what_odradek_has_cleaned(tmp_path: Path) -> None:
    data = tmp_path / "data"
    odradek = Odradek(data, {"log.cleaner.backoff.ms": "500"})
    apache = ApacheKafka(data, {"log.cleaner.enable": "false"}, formatted=True)
    try:
        odradek.start()
        settings = [word for config in CONFIGS for word in ("--config", config)]
        where = ("--bootstrap-server", odradek.bootstrap)
        jvm.tool("kafka-topics", *where, "--create", "--topic", TOPIC, "--partitions", "1", *settings)
        expected = produce(odradek)
        wait_until_cleaned(odradek)
        state, count = read(odradek)
        assert state == expected
        assert count < RECORDS / 2
        odradek.stop()
        apache.start()
        assert read(apache)[0] == expected
        apache.stop()
    finally:
        odradek.forget()
        apache.forget()
