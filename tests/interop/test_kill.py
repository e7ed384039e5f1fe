"""Tests kill -9 under load: acknowledged records stay at their offsets, once."""

from __future__ import annotations

import random
import time

import pytest

from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.load import Reader, Seen, Writer

TOPIC = "under-load"
WRITERS: tuple[dict[str, object], ...] = (
    {"enable.idempotence": True, "linger.ms": 1},
    {"enable.idempotence": True, "linger.ms": 5, "compression.type": "zstd"},
    {"enable.idempotence": False, "linger.ms": 1, "max.in.flight": 1},
)
LOAD_S = (0.02, 0.4)


@pytest.fixture
def properties() -> dict[str, str]:
    # Small segments and few index bytes: a kill falls on a roll and on an index entry now and then.
    return {"num.partitions": str(len(WRITERS)), "log.segment.bytes": "1048576", "log.index.interval.bytes": "512"}


@pytest.mark.timeout(0)
def test_what_was_acknowledged_survives_every_kill(broker: Broker, request: pytest.FixtureRequest) -> None:
    cycles = int(request.config.getoption("--kill-cycles"))
    chance = random.Random(cycles)
    Confluent().create(broker.bootstrap, TOPIC, partitions=len(WRITERS))
    writers = [Writer(broker.bootstrap, (TOPIC, number), settings) for number, settings in enumerate(WRITERS)]
    reader = Reader(broker.bootstrap, TOPIC, len(WRITERS))
    for thread in (*writers, reader):
        thread.start()

    for _ in range(cycles):
        time.sleep(chance.uniform(*LOAD_S))  # the length of the load, by the seed
        broker.kill9()
        broker.start()
    for writer in writers:
        writer.finish()
    reader.finish()

    assert not reader.faults
    for partition, writer in enumerate(writers):
        assert not writer.failures
        check(writer, reader.seen[partition])
        assert len(writer.acknowledged) > cycles
    idempotent = [partition for partition, settings in enumerate(WRITERS) if settings["enable.idempotence"]]
    for partition in idempotent:
        assert [seen.number for seen in reader.seen[partition]] == list(range(writers[partition].sent))


def check(writer: Writer, seen: list[Seen]) -> None:
    """Checks that each offset has one record, each acknowledged record is at its offset, and all are in order."""
    assert [one.offset for one in seen] == list(range(len(seen)))
    stored = dict(seen)
    assert {offset: stored.get(offset) for offset in writer.acknowledged} == writer.acknowledged
    assert list(dict.fromkeys(one.number for one in seen)) == list(range(writer.sent))
