"""Clients in other languages: a JVM or Node process that reads commands line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.interop import jvm, node
from tests.interop.clients.driver import Kind
from tests.interop.processes import LineClient


class LineDriver:
    """A process that understands the commands of Client.java. It is started at its first use, and again after its
    end."""

    def __init__(self, start: Callable[[], LineClient], settings: Callable[[Kind], Mapping[str, str]]) -> None:
        self._start = start
        self._settings = settings
        self._client: LineClient | None = None

    def _ask(self, command: str, *words: object, lines: Sequence[str] = ()) -> list[str]:
        if self._client is None or not self._client.is_running:
            self._client = self._start()
        return self._client.ask(" ".join(map(str, (command, *words))), lines)

    def create(self, bootstrap: str, topic: str) -> None:
        self._ask("create", bootstrap, topic, 1)

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        settings = [f"{key}={value}" for key, value in self._settings(kind).items()]
        lines = [value.decode() for value in values]
        self._ask("produce", bootstrap, topic, 0, len(values), *settings, lines=lines)

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        answer = self._ask("consume", bootstrap, topic, 0, offset, count)
        return [line.split(" ", 2)[2].encode() for line in answer]

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        (answer,) = self._ask("timestamp", bootstrap, topic, 0, timestamp_ms)
        return self.consume(bootstrap, topic, int(answer.removeprefix("offset ")), count)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def java(version: str, logs: Path) -> LineDriver:
    """Returns the driver of the Java client of one version."""

    def settings(kind: Kind) -> dict[str, str]:
        return {
            "compression.type": kind.codec,
            "acks": kind.acks,
            "enable.idempotence": str(kind.idempotent).lower(),
            # 0.11 knows idempotence with one request in flight only; five came with 1.0.
            "max.in.flight.requests.per.connection": "1" if version.startswith("0.") else "5",
            "linger.ms": "5",
        }

    return LineDriver(lambda: jvm.line_client(version, logs / f"java-{version}.log"), settings)


def kafkajs(logs: Path) -> LineDriver:
    def settings(kind: Kind) -> dict[str, str]:
        return {"codec": kind.codec, "acks": kind.acks, "idempotent": str(kind.idempotent).lower()}

    return LineDriver(lambda: node.line_client(logs / "kafkajs.log"), settings)
