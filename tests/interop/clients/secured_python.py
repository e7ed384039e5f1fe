"""kafka-python and aiokafka in the security matrix. Their errors are their exceptions, and their log lines before."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.interop.clients.secured import PATIENCE_S, Access, Refused

BOOTSTRAP_MS = 3_000
"""Timeout of kafka-python's first connection, which it tries repeatedly after any error."""


class Hearing(logging.Handler):
    """Collects the lines of a logger."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def refusing(library: str) -> Iterator[None]:
    """Turns a library's exception, and its log lines so far, into Refused."""
    logger, hearing = logging.getLogger(library), Hearing()
    logger.addHandler(hearing)
    try:
        yield
    except Exception as error:
        raise Refused("\n".join((f"{type(error).__name__}: {error}", *hearing.lines))) from error
    finally:
        logger.removeHandler(hearing)


def settings(access: Access) -> dict[str, Any]:
    """Returns the settings that both clients have; each has other names for those of TLS."""
    given: dict[str, Any] = {"bootstrap_servers": access.address, "security_protocol": access.protocol}
    if access.mechanism:
        given |= {"sasl_mechanism": access.mechanism}
    if access.password and access.mechanism:
        given |= {"sasl_plain_username": access.user, "sasl_plain_password": access.password}
    return given


class KafkaPython:
    """kafka-python."""

    def _settings(self, access: Access) -> dict[str, Any]:
        given = {**settings(access), "bootstrap_timeout_ms": BOOTSTRAP_MS}
        if access.has_tls:
            given |= {"ssl_cafile": str(access.authority)}
        if access.certificate is not None:
            given |= {"ssl_certfile": str(access.certificate), "ssl_keyfile": str(access.certificate)}
        if access.token is not None:
            from kafka.net.sasl.oauth import AbstractTokenProvider

            class Provider(AbstractTokenProvider):  # type: ignore[misc]
                def token(self) -> str:
                    return access.token_text()

            given |= {"sasl_oauth_token_provider": Provider()}
        return given

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        from kafka import KafkaProducer

        with refusing("kafka"):
            producer = KafkaProducer(**self._settings(access), max_block_ms=PATIENCE_S * 500)
            try:
                for one in [producer.send(topic, value, partition=0) for value in values]:
                    one.get(timeout=PATIENCE_S)
            finally:
                producer.close(1)

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        from kafka import KafkaConsumer, TopicPartition

        values: list[bytes] = []
        with refusing("kafka"):
            consumer = KafkaConsumer(**self._settings(access), enable_auto_commit=False)
            try:
                consumer.assign([TopicPartition(topic, 0)])
                consumer.seek(TopicPartition(topic, 0), 0)
                end = time.monotonic() + PATIENCE_S
                while len(values) < count:
                    if time.monotonic() > end:
                        raise TimeoutError("no record in time")
                    for records in consumer.poll(timeout_ms=200).values():
                        values += [record.value for record in records]
            finally:
                consumer.close()
        return values

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""


class AioKafka:
    """aiokafka, with one event loop per call."""

    def _settings(self, access: Access) -> dict[str, Any]:
        given = settings(access)
        if access.has_tls:
            context = ssl.create_default_context(cafile=str(access.authority))
            if access.certificate is not None:
                context.load_cert_chain(access.certificate)
            given |= {"ssl_context": context}
        if access.token is not None:
            from aiokafka.abc import AbstractTokenProvider

            class Provider(AbstractTokenProvider):  # type: ignore[misc]
                async def token(self) -> str:
                    return access.token_text()

            given |= {"sasl_oauth_token_provider": Provider()}
        return given

    def produce(self, access: Access, topic: str, values: Sequence[bytes]) -> None:
        from aiokafka import AIOKafkaProducer

        async def work() -> None:
            async with asyncio.timeout(PATIENCE_S), AIOKafkaProducer(**self._settings(access)) as producer:
                for sent in [await producer.send(topic, value, partition=0) for value in values]:
                    await sent

        with refusing("aiokafka"):
            asyncio.run(work())

    def consume(self, access: Access, topic: str, count: int) -> list[bytes]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async def work() -> list[bytes]:
            values: list[bytes] = []
            given = {**self._settings(access), "enable_auto_commit": False}
            async with asyncio.timeout(PATIENCE_S), AIOKafkaConsumer(**given) as consumer:
                consumer.assign([TopicPartition(topic, 0)])
                consumer.seek(TopicPartition(topic, 0), 0)
                while len(values) < count:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        values += [record.value for record in records]
            return values

        with refusing("aiokafka"):
            return asyncio.run(work())

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
