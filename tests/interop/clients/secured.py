"""The clients of the security matrix: each is told in its own words how to get in, produces, consumes, or is refused."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.interop import jvm, node
from tests.interop.processes import LineClient, run

PATIENCE_S = 20
"""How long a client may try before it is taken for refused without a word."""


class Access(NamedTuple):
    """How a client gets in."""

    address: str
    protocol: str
    """SSL, SASL_SSL or SASL_PLAINTEXT."""
    authority: Path
    """The authority whose certificates it trusts."""
    certificate: Path | None = None
    """Its own certificate, with the key."""
    mechanism: str = ""
    user: str = ""
    password: str = ""

    @property
    def has_tls(self) -> bool:
        return self.protocol != "SASL_PLAINTEXT"


class Refused(Exception):
    """A client was not let in, or may not do it. Has the client's words."""


class SecuredClient(Protocol):
    """A client library. Everything is about partition 0 of a topic."""

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        """Writes the values. Raises Refused."""
        ...

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        """Reads as many values from the start. Raises Refused."""
        ...

    def close(self) -> None:
        """Lets go of processes."""
        ...


# librdkafka.


def librdkafka_settings(access: Access) -> dict[str, str]:
    settings = {"bootstrap.servers": access.address, "security.protocol": access.protocol.lower()}
    if access.has_tls:
        settings |= {"ssl.ca.location": str(access.authority)}
    if access.certificate is not None:
        settings |= {"ssl.certificate.location": str(access.certificate), "ssl.key.location": str(access.certificate)}
    if access.mechanism:
        settings |= {
            "sasl.mechanism": access.mechanism, "sasl.username": access.user, "sasl.password": access.password,
        }  # fmt: skip
    return settings


class Kcat:
    """kcat, a process for each call."""

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        lines = b"".join(value + b"\n" for value in values)
        self._run(access, "-P", "-t", topic, "-p", "0", "-X", "message.timeout.ms=5000", stdin=lines)

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        return self._run(access, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count)).splitlines()

    def _run(self, access: Access, *arguments: str, stdin: bytes = b"") -> bytes:
        settings = [word for pair in librdkafka_settings(access).items() for word in ("-X", "=".join(pair))]
        ended = run(["timeout", str(PATIENCE_S), "kcat", *settings, *arguments], stdin=stdin, check=False)
        said = ended.stderr.decode(errors="replace")
        if ended.returncode or "FAIL" in said or "ERROR" in said:
            raise Refused(said)
        return ended.stdout

    def close(self) -> None:
        """Nothing outlives a call."""


class Confluent:
    """confluent-kafka, which tells of what is wrong with a connection in a callback."""

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        from confluent_kafka import Producer

        told: list[str] = []
        producer = Producer({**librdkafka_settings(access), "error_cb": lambda error: told.append(error.str())})
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=lambda error, _: error and told.append(error.str()))
        end = time.monotonic() + PATIENCE_S
        while len(producer) and not told and time.monotonic() < end:
            producer.poll(0.1)
        left = len(producer)
        producer.purge()
        producer.flush(1)
        if told or left:
            raise Refused(told[0] if told else "no word")

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        from confluent_kafka import Consumer, TopicPartition

        told: list[str] = []
        settings = {"group.id": "unused", "enable.auto.commit": False, "error_cb": lambda one: told.append(one.str())}
        consumer = Consumer({**librdkafka_settings(access), **settings})
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        end = time.monotonic() + PATIENCE_S
        while len(values) < count and not told and time.monotonic() < end:
            for message in consumer.consume(count - len(values), timeout=0.2):
                if message.error():
                    told.append(message.error().str())
                else:
                    values.append(message.value())
        consumer.close()
        if len(values) < count:
            raise Refused(told[0] if told else "no word")
        return values

    def close(self) -> None:
        """Nothing outlives a call."""


# Python's own.


@contextmanager
def refusing() -> Iterator[None]:
    """Whatever a library raises are its words."""
    try:
        yield
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


class KafkaPython:
    def _settings(self, access: Access) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap_servers": access.address, "security_protocol": access.protocol}
        if access.has_tls:
            settings |= {"ssl_cafile": str(access.authority)}
        if access.certificate is not None:
            settings |= {"ssl_certfile": str(access.certificate), "ssl_keyfile": str(access.certificate)}
        if access.mechanism:
            settings |= {
                "sasl_mechanism": access.mechanism,
                "sasl_plain_username": access.user,
                "sasl_plain_password": access.password,
            }
        return settings

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        from kafka import KafkaProducer

        with refusing():
            producer = KafkaProducer(**self._settings(access), max_block_ms=PATIENCE_S * 500)
            try:
                for one in [producer.send(topic, value, partition=0) for value in values]:
                    one.get(timeout=PATIENCE_S)
            finally:
                producer.close(1)

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        from kafka import KafkaConsumer, TopicPartition

        values: list[bytes] = []
        with refusing():
            consumer = KafkaConsumer(**self._settings(access), enable_auto_commit=False)
            try:
                consumer.assign([TopicPartition(topic, 0)])
                consumer.seek(TopicPartition(topic, 0), 0)
                end = time.monotonic() + PATIENCE_S
                while len(values) < count and time.monotonic() < end:
                    for records in consumer.poll(timeout_ms=200).values():
                        values += [record.value for record in records]
            finally:
                consumer.close()
        if len(values) < count:
            raise Refused("no word")
        return values

    def close(self) -> None:
        """Nothing outlives a call."""


class AioKafka:
    def _settings(self, access: Access) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap_servers": access.address, "security_protocol": access.protocol}
        if access.has_tls:
            context = ssl.create_default_context(cafile=str(access.authority))
            if access.certificate is not None:
                context.load_cert_chain(access.certificate)
            settings |= {"ssl_context": context}
        if access.mechanism:
            settings |= {
                "sasl_mechanism": access.mechanism,
                "sasl_plain_username": access.user,
                "sasl_plain_password": access.password,
            }
        return settings

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        from aiokafka import AIOKafkaProducer

        async def work() -> None:
            async with asyncio.timeout(PATIENCE_S), AIOKafkaProducer(**self._settings(access)) as producer:
                for sent in [await producer.send(topic, value, partition=0) for value in values]:
                    await sent

        with refusing():
            asyncio.run(work())

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async def work() -> list[bytes]:
            values: list[bytes] = []
            settings = {**self._settings(access), "enable_auto_commit": False}
            async with asyncio.timeout(PATIENCE_S), AIOKafkaConsumer(**settings) as consumer:
                consumer.assign([TopicPartition(topic, 0)])
                consumer.seek(TopicPartition(topic, 0), 0)
                while len(values) < count:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        values += [record.value for record in records]
            return values

        with refusing():
            return asyncio.run(work())

    def close(self) -> None:
        """Nothing outlives a call."""


# Processes that take the commands of Client.java.


def java_settings(access: Access) -> dict[str, str]:
    settings = {"security.protocol": access.protocol}
    if access.has_tls:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(access.authority)}
    if access.certificate is not None:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(access.certificate)}
    if access.mechanism:
        login = "plain.PlainLoginModule" if access.mechanism == "PLAIN" else "scram.ScramLoginModule"
        module = f"org.apache.kafka.common.security.{login}"
        jaas = f'{module} required username="{access.user}" password="{access.password}";'
        settings |= {"sasl.mechanism": access.mechanism, "sasl.jaas.config": jaas}
    return settings


def properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def kafkajs_settings(access: Access) -> str:
    settings: dict[str, Any] = {}
    if access.has_tls:
        settings["ssl"] = {"ca": [access.authority.read_text()]}
    if access.certificate is not None:
        settings["ssl"] |= {"key": access.certificate.read_text(), "cert": access.certificate.read_text()}
    if access.mechanism:
        settings["sasl"] = {
            "mechanism": access.mechanism.lower(), "username": access.user, "password": access.password,
        }  # fmt: skip
    return json.dumps(settings)


class ByLines:
    """A process that is driven by lines, with its settings in a file."""

    def __init__(self, start: Callable[[], LineClient], settings: Callable[[Access], str], folder: Path) -> None:
        self._start = start
        self._settings = settings
        self._folder = folder
        self._numbers = itertools.count()
        self._client: LineClient | None = None

    def _ask(self, access: Access, command: str, lines: Sequence[str] = ()) -> list[str]:
        file = self._folder / f"{next(self._numbers)}.settings"
        file.write_text(self._settings(access))
        if self._client is None or not self._client.is_running:
            self._client = self._start()
        try:
            return self._client.ask(f"{command} config={file}", lines)
        except AssertionError as error:
            raise Refused(str(error).partition(" failed: ")[2] or str(error)) from None

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        words = f"produce {access.address} {topic} 0 {len(values)}"
        self._ask(access, words, [value.decode() for value in values])

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        answer = self._ask(access, f"consume {access.address} {topic} 0 0 {count}")
        return [line.split(" ", 2)[2].encode() for line in answer]

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def java(version: str, folder: Path) -> ByLines:
    """The Java client of one version."""
    limits = {"max.block.ms": str(PATIENCE_S * 1000)}
    return ByLines(
        lambda: jvm.line_client(version, folder / f"java-{version}.log"),
        lambda access: properties({**java_settings(access), **limits}),
        folder,
    )


def kafkajs(folder: Path) -> ByLines:
    return ByLines(lambda: node.line_client(folder / "kafkajs.log"), kafkajs_settings, folder)


class ApacheTools:
    """kafka-console-producer and kafka-console-consumer, which exit with 0 and tell in the log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def _run(self, name: str, access: Access, *arguments: str, stdin: bytes = b"") -> bytes:
        file = self._folder / f"tool-{next(self._numbers)}.properties"
        file.write_text(properties(java_settings(access)))
        words = ["--bootstrap-server", access.address, "--command-config", str(file), *arguments]
        ended = run(jvm.command_of(name, *words), stdin=stdin, check=False)
        said = ended.stderr.decode(errors="replace") + ended.stdout.decode(errors="replace")
        if found := re.search(r"org\.apache\.kafka\.common\.errors\.(\w+: .*)", said):
            raise Refused(found[1])
        if ended.returncode:
            raise Refused(said)
        return ended.stdout

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        lines = b"".join(value + b"\n" for value in values)
        limit = f"max.block.ms={PATIENCE_S * 1000}"
        self._run("kafka-console-producer", access, "--topic", topic, "--command-property", limit, stdin=lines)

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        words = ["--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", str(count)]
        wait = ["--timeout-ms", str(PATIENCE_S * 1000)]
        return self._run("kafka-console-consumer", access, *words, *wait).splitlines()

    def close(self) -> None:
        """Nothing outlives a call."""


CLIENTS: dict[str, Callable[[Path], SecuredClient]] = {
    "kcat": lambda _: Kcat(),
    "confluent-kafka": lambda _: Confluent(),
    "kafka-python": lambda _: KafkaPython(),
    "aiokafka": lambda _: AioKafka(),
    "kafkajs": kafkajs,
    "Java 2.8.2": lambda folder: java("2.8.2", folder),
    "Java 4.3.1": lambda folder: java("4.3.1", folder),
    "Apache Kafka's tools": ApacheTools,
}
"""Each client by its name, made with a folder for its files and logs."""
