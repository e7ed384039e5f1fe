"""The driver of kcat, with Debian's librdkafka; also configured for an old broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.interop.clients.driver import CONSUME_TIMEOUT_S, Kind
from tests.interop.processes import run


class Kcat(NamedTuple):
    """Uses one kcat process per call. `fallback` is librdkafka's broker.version.fallback, without ApiVersions."""

    fallback: str | None = None

    def _run(self, *arguments: str, stdin: bytes = b"", timeout_s: float = CONSUME_TIMEOUT_S) -> bytes:
        old = ["-X", "api.version.request=false", "-X", f"broker.version.fallback={self.fallback}"]
        command = ["kcat", "-q", *(old if self.fallback else []), *arguments]
        return run(command, stdin=stdin, timeout_s=timeout_s).stdout

    def create(self, bootstrap: str, topic: str) -> None:
        """Creates the topic by requesting its metadata, because kcat has no admin requests."""
        self._run("-L", "-b", bootstrap, "-t", topic, "-X", "allow.auto.create.topics=true")

    def produce(self, bootstrap: str, topic: str, values: Sequence[bytes], kind: Kind) -> None:
        settings = ["-X", f"acks={kind.acks}", "-X", f"enable.idempotence={str(kind.idempotent).lower()}"]
        lines = b"".join(value + b"\n" for value in values)
        self._run("-P", "-b", bootstrap, "-t", topic, "-p", "0", "-z", kind.codec, *settings, stdin=lines)

    def _consume(self, bootstrap: str, topic: str, start: str, count: int) -> list[bytes]:
        read = ["-C", "-b", bootstrap, "-t", topic, "-p", "0", "-o", start, "-c", str(count), "-D", "\n"]
        return self._run(*read).splitlines()

    def consume(self, bootstrap: str, topic: str, offset: int, count: int) -> list[bytes]:
        return self._consume(bootstrap, topic, str(offset), count)

    def consume_from(self, bootstrap: str, topic: str, timestamp_ms: int, count: int) -> list[bytes]:
        return self._consume(bootstrap, topic, f"s@{timestamp_ms}", count)

    def close(self) -> None:
        """Does nothing, because nothing outlives a call."""
