"""Tests each client of the matrix with a real broker: create, produce, consume, from a timestamp, over a kill."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.driver import CODECS, Driver, Kind
from tests.interop.matrix import CLIENTS, Client

COUNT = 20
CODEC_OF_ATTRIBUTES = dict(enumerate(CODECS))
REFERENCE = Confluent()


def marks(client: Client) -> list[pytest.MarkDecorator]:
    return [pytest.mark.odradek_only] if client.odradek_only else []


def every_client() -> list[object]:
    return [pytest.param(client, id=client.name, marks=marks(client)) for client in CLIENTS]


def with_timestamps() -> list[object]:
    return [pytest.param(client, id=client.name, marks=marks(client)) for client in CLIENTS if client.timestamps]


def each_kind() -> list[object]:
    return [
        pytest.param(client, kind, marks=marks(client), id=f"{client.name}-{kind.codec}-{name_of(kind)}")
        for client in CLIENTS
        for kind in client.kinds()
    ]


def name_of(kind: Kind) -> str:
    return "idempotent" if kind.idempotent else f"acks-{kind.acks}"


def values_of(name: str, count: int = COUNT) -> list[bytes]:
    """Returns values that name their writer, and that every codec can compress."""
    return [f"{name} {number:06} {'abcdefgh' * 16}".encode() for number in range(count)]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Driver]]:
    """Yields a driver of each client, by the client's name; their processes start at their first use."""
    logs = tmp_path_factory.mktemp("clients")
    made = {client.name: client.make(logs) for client in CLIENTS}
    yield made
    for driver in made.values():
        driver.close()


def stored_codecs(data: Path, topic: str) -> set[str]:
    """Returns the codecs of the batches in partition 0 of a topic, read from its segments."""
    codecs: set[str] = set()
    for segment in sorted((data / f"{topic}-0").glob("*.log")):
        records = segment.read_bytes()
        position = 0
        while position + 61 <= len(records):
            length, _, magic, _, attributes = struct.unpack_from(">iibih", records, position + 8)
            assert magic == 2, f"{segment} at {position}: magic {magic}"
            codecs.add(CODEC_OF_ATTRIBUTES[attributes & 7])
            position += 12 + length
    return codecs


@pytest.mark.parametrize("client", every_client())
def test_a_client_creates_a_topic(
    client: Client, drivers: dict[str, Driver], shared_broker: Broker, topic: str
) -> None:
    drivers[client.name].create(shared_broker.bootstrap, topic)
    REFERENCE.produce(shared_broker.bootstrap, topic, [b"one"], Kind())
    assert REFERENCE.consume(shared_broker.bootstrap, topic, 0, 1) == [b"one"]


@pytest.mark.parametrize(("client", "kind"), each_kind())
def test_what_a_client_produces_is_read_back(
    client: Client, kind: Kind, drivers: dict[str, Driver], shared_broker: Broker, topic: str
) -> None:
    REFERENCE.create(shared_broker.bootstrap, topic)
    values = values_of(client.name)
    drivers[client.name].produce(shared_broker.bootstrap, topic, values, kind)
    assert REFERENCE.records(shared_broker.bootstrap, topic, 0, COUNT) == list(enumerate(values))
    assert stored_codecs(shared_broker.data, topic) == {kind.codec}


@pytest.mark.parametrize("client", every_client())
def test_a_client_reads_from_the_start_and_from_within(
    client: Client, drivers: dict[str, Driver], shared_broker: Broker, topic: str
) -> None:
    values = values_of(client.name)
    REFERENCE.create(shared_broker.bootstrap, topic)
    REFERENCE.produce(shared_broker.bootstrap, topic, values, Kind("gzip"))
    assert drivers[client.name].consume(shared_broker.bootstrap, topic, 0, COUNT) == values
    assert drivers[client.name].consume(shared_broker.bootstrap, topic, 7, COUNT - 7) == values[7:]


@pytest.mark.parametrize("client", with_timestamps())
def test_a_client_reads_from_a_timestamp(
    client: Client, drivers: dict[str, Driver], shared_broker: Broker, topic: str
) -> None:
    start_ms = int(time.time() * 1000) - 60_000
    values = values_of(client.name)
    REFERENCE.create(shared_broker.bootstrap, topic)
    stamped = [(start_ms + 1000 * number, value) for number, value in enumerate(values)]
    REFERENCE.produce_at(shared_broker.bootstrap, topic, stamped, Kind("gzip"))
    read = drivers[client.name].consume_from(shared_broker.bootstrap, topic, start_ms + 6_500, COUNT - 7)
    assert read == values[7:]


@pytest.mark.parametrize("client", every_client())
def test_what_a_client_wrote_is_there_after_a_kill(
    client: Client, drivers: dict[str, Driver], shared_broker: Broker, topic: str
) -> None:
    driver = drivers[client.name]
    before, after = values_of(f"{client.name} before"), values_of(f"{client.name} after")
    driver.create(shared_broker.bootstrap, topic)
    driver.produce(shared_broker.bootstrap, topic, before, Kind("gzip"))
    shared_broker.kill9()
    shared_broker.start()
    driver.produce(shared_broker.bootstrap, topic, after, Kind("snappy"))
    assert driver.consume(shared_broker.bootstrap, topic, 0, 2 * COUNT) == [*before, *after]


@pytest.fixture(scope="module")
def mixed_topic(drivers: dict[str, Driver], shared_broker: Broker, peer: str) -> tuple[str, list[bytes]]:
    """Returns a topic to which every client has written with every codec that all clients can read, and its content."""
    topic, written = "written-by-all", []
    REFERENCE.create(shared_broker.bootstrap, topic)
    for client in CLIENTS:
        if client.odradek_only and peer == "apache":
            continue
        for codec in ("none", "gzip", "snappy"):
            values = values_of(f"{client.name} {codec}", 5)
            drivers[client.name].produce(shared_broker.bootstrap, topic, values, Kind(codec))
            written += values
    return topic, written


@pytest.mark.parametrize("client", every_client())
def test_a_client_of_any_age_reads_what_all_others_wrote(
    client: Client, drivers: dict[str, Driver], shared_broker: Broker, mixed_topic: tuple[str, list[bytes]]
) -> None:
    topic, written = mixed_topic
    assert drivers[client.name].consume(shared_broker.bootstrap, topic, 0, len(written)) == written
