"""librdkafka in the security matrix: kcat with Debian's librdkafka, and confluent-kafka with the newest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.interop.clients.secured import PATIENCE_S, Access, Refused
from tests.interop.consumed import error_of, value_of
from tests.interop.processes import run

TOKEN_S = 3_600
GROUP = "unused"
"""The group that a consumer of librdkafka must name, because it requests the group's coordinator."""


def settings(access: Access) -> dict[str, Any]:
    """Returns the settings of librdkafka, except for tokens, which a program passes by a callback."""
    given = {"bootstrap.servers": access.address, "security.protocol": access.protocol.lower()}
    if access.has_tls:
        given |= {"ssl.ca.location": str(access.authority)}
    if access.certificate is not None:
        given |= {"ssl.certificate.location": str(access.certificate), "ssl.key.location": str(access.certificate)}
    if access.mechanism:
        given |= {"sasl.mechanism": access.mechanism}
    if access.password and access.mechanism:
        given |= {"sasl.username": access.user, "sasl.password": access.password}
    return given


class Kcat:
    """kcat, with a process for each call."""

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        lines = b"".join(value + b"\n" for value in values)
        self._run(access, "-P", "-t", topic, "-p", "0", "-X", "message.timeout.ms=10000", stdin=lines)

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        return self._run(access, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count)).splitlines()

    def _run(self, access: Access, *arguments: str, stdin: bytes = b"") -> bytes:
        words = [word for pair in settings(access).items() for word in ("-X", "=".join(pair))]
        ended = run(["timeout", str(PATIENCE_S), "kcat", *words, *arguments], stdin=stdin, check=False)
        output = ended.stderr.decode(errors="replace")
        if ended.returncode or "FAIL" in output or "ERROR" in output:
            raise Refused(output)
        return ended.stdout

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""


class Confluent:
    """confluent-kafka, which reports connection errors in a callback."""

    def _settings(self, access: Access, tell: Callable[[str], None]) -> dict[str, Any]:
        given = {**settings(access), "log_level": 0, "error_cb": lambda error: tell(error.str())}
        if access.token is not None:
            text = access.token_text()
            given["oauth_cb"] = lambda _: (text, time.time() + TOKEN_S, access.user, {})
        return given

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        from confluent_kafka import KafkaError, Message, Producer

        errors: list[str] = []

        def report(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(error.str())

        producer = Producer(self._settings(access, errors.append))
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=report)
        end = time.monotonic() + PATIENCE_S
        while len(producer) and not errors and time.monotonic() < end:
            producer.poll(0.1)
        left = len(producer)
        producer.purge()
        producer.flush(1)
        if errors or left:
            raise Refused(errors[0] if errors else "no word")

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        from confluent_kafka import Consumer, TopicPartition

        errors: list[str] = []
        given = {"group.id": GROUP, "enable.auto.commit": False}
        consumer = Consumer({**self._settings(access, errors.append), **given})
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        end = time.monotonic() + PATIENCE_S
        while len(values) < count and not errors and time.monotonic() < end:
            for message in consumer.consume(count - len(values), timeout=0.2):
                if message.error():
                    errors.append(error_of(message).str())
                else:
                    values.append(value_of(message))
        if not errors and len(values) < count:  # of a topic that is assigned only its metadata say that it is closed
            errors.append(str(consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].error))
        consumer.close()
        if len(values) < count:
            raise Refused(errors[0] if errors else "no word")
        return values

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
