"""The client matrix: every tested client and its features. The tests and docs/protocol.md are derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.interop.clients.driver import ACKS, CODECS, Driver, Kind

BEFORE_ZSTD = ("none", "gzip", "snappy", "lz4")
JAVA_VERSIONS = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.2", "4.3.1")


class Client(NamedTuple):
    """A row of the matrix."""

    name: str
    make: Callable[[Path], Driver]  # given a folder for logs
    codecs: tuple[str, ...] = CODECS
    creates: str = "CreateTopics"  # or how else it makes a topic
    idempotent: bool = True
    timestamps: bool = True  # looks offsets up by timestamp; ListOffsets 0 could only tell segments
    odradek_only: bool = False  # Apache Kafka 4 no longer speaks with it

    def kinds(self) -> Iterator[Kind]:
        """Returns every way in which this client can produce."""
        for codec in self.codecs:
            yield from (Kind(codec, acks) for acks in ACKS)
            if self.idempotent:
                yield Kind(codec, "all", idempotent=True)


def _kcat(fallback: str | None = None) -> Callable[[Path], Driver]:
    def make(_logs: Path) -> Driver:
        from tests.interop.clients.kcat import Kcat

        return Kcat(fallback)

    return make


def _kafka_python(*api_version: int) -> Callable[[Path], Driver]:
    def make(_logs: Path) -> Driver:
        from tests.interop.clients.kafka_python import KafkaPython

        return KafkaPython(api_version or None)

    return make


def _confluent(_logs: Path) -> Driver:
    from tests.interop.clients.confluent import Confluent

    return Confluent()


def _aiokafka(_logs: Path) -> Driver:
    from tests.interop.clients.aio import AioKafka

    return AioKafka()


def _kafkajs(logs: Path) -> Driver:
    from tests.interop.clients import lines

    return lines.kafkajs(logs)


def _java(version: str) -> Client:
    def make(logs: Path) -> Driver:
        from tests.interop.clients import lines

        return lines.java(version, logs)

    age = tuple(map(int, version.split(".")))
    return Client(
        f"Java {version}",
        make,
        codecs=CODECS if age >= (2, 1) else BEFORE_ZSTD,
        creates="CreateTopics" if age >= (0, 11) else "metadata",
        idempotent=age >= (0, 11),
        timestamps=age >= (0, 10, 1),
        odradek_only=age < (2, 1),
    )


CLIENTS = (
    Client("kcat", _kcat(), creates="metadata"),
    Client(
        "kcat as of 0.9.0",
        _kcat("0.9.0.1"),
        codecs=BEFORE_ZSTD,
        creates="metadata",
        idempotent=False,
        timestamps=False,
        odradek_only=True,
    ),
    Client(
        "kcat as of 0.8.2",
        _kcat("0.8.2.2"),
        codecs=BEFORE_ZSTD,
        creates="metadata",
        idempotent=False,
        timestamps=False,
        odradek_only=True,
    ),
    Client("confluent-kafka", _confluent),
    Client("kafka-python", _kafka_python()),
    Client(
        "kafka-python as of 0.10",
        _kafka_python(0, 10),
        codecs=BEFORE_ZSTD,
        creates="metadata",
        idempotent=False,
        timestamps=False,
        odradek_only=True,
    ),
    Client(
        "kafka-python as of 0.8.2",
        _kafka_python(0, 8, 2),
        codecs=BEFORE_ZSTD,
        creates="metadata",
        idempotent=False,
        timestamps=False,
        odradek_only=True,
    ),
    Client("aiokafka", _aiokafka),
    Client("kafkajs", _kafkajs, codecs=("none", "gzip", "snappy")),
    *map(_java, JAVA_VERSIONS),
)


def table() -> str:
    """Returns the matrix as a table in Markdown, for docs/protocol.md."""
    head = ["client", "creates a topic by", "produces, each with acks 0, 1, all", "idempotent", "from a timestamp"]
    rows = [
        [
            client.name,
            client.creates,
            ", ".join(client.codecs),
            "yes" if client.idempotent else "–",
            "yes" if client.timestamps else "–",
        ]
        for client in CLIENTS
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))
