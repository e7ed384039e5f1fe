"""A proxy that reads every response of a broker with Apache Kafka's classes (tests/interop/jvm/Decoder.java)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.jars import APACHE_KAFKA
from tests.interop import jvm
from tests.interop.processes import LineClient

HEAP = "-Xmx1g"


class Decoded(NamedTuple):
    """The responses that the proxies have seen."""

    read: Mapping[str, Mapping[str, int]]
    """Numbers of responses that Apache Kafka's classes read, by API and version."""
    not_read: Mapping[str, Mapping[str, int]]
    """Numbers of responses of versions that Apache Kafka no longer has."""
    defects: list[str]
    """A line for each response that is malformed, not as Apache Kafka would write it, out of order, or the error
    UNKNOWN_SERVER_ERROR; the first hundred."""


class Decoder:
    """One process, with a proxy for each port of a broker."""

    def __init__(self, log: Path) -> None:
        classpath = jvm.compiled("Decoder.java", APACHE_KAFKA)
        self._process = LineClient("decoder", jvm.java(classpath, "Decoder", flags=(HEAP,)), log)

    def proxy(self, port: int, upstream_port: int) -> None:
        """Listens at a port, and connects each client with a broker's port."""
        self._process.ask(f"proxy {port} {upstream_port}")

    def report(self) -> Decoded:
        return decoded(self._process.ask("report"))

    def close(self) -> None:
        self._process.close()


def decoded(lines: Iterable[str]) -> Decoded:
    """Reads the lines of a report."""
    read: dict[str, dict[str, int]] = {}
    not_read: dict[str, dict[str, int]] = {}
    defects: list[str] = []
    for line in lines:
        kind, rest = line.split(" ", 1)
        if kind == "defect":
            defects.append(rest)
        else:
            api, version, count = rest.split(" ")
            (read if kind == "read" else not_read).setdefault(api, {})[version] = int(count)
    return Decoded(read, not_read, defects)
