"""Apache Kafka's VerifiableProducer and VerifiableConsumer: the acknowledged numbers, and the numbers read."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.interop.jvm import command_of
from tests.interop.processes import Server

BEGINS_WITHIN_S = 180
Place = tuple[int, int]
"""A partition and an offset."""


class Verifiable(Server):
    """One of the two tools. It prints a line of JSON for each event, and ends by SIGTERM."""

    ready = r'"name":"startup_complete"'

    def __init__(self, tool: str, folder: Path, *words: str) -> None:
        super().__init__(tool, folder / f"{tool}.log")
        self._command = command_of(tool, *words)

    def start(self) -> None:
        self.launch(self._command, self.ready, BEGINS_WITHIN_S)

    def end(self) -> None:
        """Ends the tool after it has finished its work."""
        self.signal(signal.SIGTERM)
        self.wait(BEGINS_WITHIN_S)

    def events(self, name: str) -> Iterator[dict[str, object]]:
        for line in self.log.read_text().splitlines():
            if line.startswith("{") and f'"name":"{name}"' in line:
                yield json.loads(line)

    def values(self, name: str) -> dict[Place, int]:
        """Returns the numbers in the events of one kind, by their place."""
        return {(_int(event["partition"]), _int(event["offset"])): _int(event["value"]) for event in self.events(name)}


class VerifiableProducer(Verifiable):
    """Writes 0, 1, 2, … until it is ended, with acks=all. The tool itself never retries."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, per_s: int = 300) -> None:
        options = folder / "verifiable-producer.properties"
        options.write_text(f"retries={2**31 - 1}\nenable.idempotence=true\ndelivery.timeout.ms=600000\n")
        words = ("--bootstrap-server", bootstrap, "--topic", topic, "--producer.config", str(options))
        super().__init__("kafka-verifiable-producer", folder, *words, "--throughput", str(per_s), "--acks", "-1")

    def acknowledged(self) -> dict[Place, int]:
        return self.values("producer_send_success")

    def failures(self) -> list[dict[str, object]]:
        return [*self.events("producer_send_error")]


class VerifiableConsumer(Verifiable):
    """Reads a topic as a group's only member, by one of the two protocols."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, protocol: str) -> None:
        where = ("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", f"{topic}-{protocol}")
        super().__init__("kafka-verifiable-consumer", folder, *where, "--group-protocol", protocol, "--verbose")

    def consumed(self) -> dict[Place, int]:
        return self.values("record_data")


def _int(value: object) -> int:
    return int(str(value))
