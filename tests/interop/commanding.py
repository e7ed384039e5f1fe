"""Runs commands in the test's own process, against Odradek and Apache Kafka: the same words must give the same
output."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.main import main
from tests.interop.brokers import ApacheKafka, Broker, Odradek
from tests.interop.sharing import SHORT

Rows = list[dict[str, object]]
VARYING = {"id"}
"""Keys whose values differ between clusters."""

PROPERTIES = {
    **SHORT,
    "group.share.record.lock.duration.ms": "30000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "log.retention.ms": "-1",  # the records of tests are of a day in the past: old, for whoever looks for such
}
"""Properties of both brokers."""

UNLIMITED = ("-X", "request.timeout.ms=3600000")
"""Makes a request's timeout longer than a test's: a command hangs, and the test fails, if it waits for more of a silent
broker than its connection."""


class Outcome(NamedTuple):
    """The visible outcome of a command."""

    status: int
    out: str
    err: str

    @property
    def rows(self) -> Rows:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Outcome]
Feed = Callable[[bytes], None]


class Fed:
    """Standard input with a test's content; each command that reads it gets all of it."""

    content = b""

    @property
    def buffer(self) -> io.BytesIO:
        return io.BytesIO(self.content)

    def isatty(self) -> bool:
        return False

    def readline(self) -> str:
        return self.content.decode().partition("\n")[0]


def both(folder: Path) -> Iterator[list[Broker]]:
    """Yields a running Odradek and a running Apache Kafka."""
    brokers: list[Broker] = [Odradek(folder / "odradek", PROPERTIES), ApacheKafka(folder / "apache", PROPERTIES)]
    for broker in brokers:
        broker.start()
    yield brokers
    for broker in brokers:
        broker.stop()
        broker.forget()


def call(capsys: pytest.CaptureFixture[str], bootstrap: str, words: tuple[str, ...]) -> Outcome:
    """Runs `odradek WORDS… -b BOOTSTRAP`."""
    capsys.readouterr()
    try:
        status = main([*words, "-b", bootstrap])
    except SystemExit as misused:
        status = int(misused.code or 0)
    return Outcome(status, *capsys.readouterr())


def without_varying(value: object, varying: AbstractSet[str] = VARYING) -> object:
    """Returns a value without the parts that differ between clusters, and errors without the brokers' own messages."""
    if isinstance(value, dict):
        return {key: without_varying(item, varying) for key, item in value.items() if key not in {*varying, "error"}}
    if isinstance(value, list):
        return [without_varying(item, varying) for item in value]
    return value.split(":")[0] if isinstance(value, str) and value.split(":")[0].isupper() else value


READING = ("list", "describe")
LEARNS_WITHIN_S = 10.0
"""Time within which Apache Kafka's broker learns of a change that its controller has answered. Odradek shows the change
at once."""


def run_on(brokers: list[Broker], capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs a command on both brokers, and returns Odradek's outcome once Apache Kafka's is the
    same."""

    def run_on_both(*words: str, status: int = 0, varying: AbstractSet[str] = VARYING) -> Outcome:
        ours, theirs = (call(capsys, broker.bootstrap, words) for broker in brokers)
        assert ours.status == theirs.status == status, (ours, theirs)
        expected, ends_s = without_varying(ours.rows, varying), time.monotonic() + LEARNS_WITHIN_S
        while (differing := without_varying(theirs.rows, varying)) != expected and words[1] in READING:
            if time.monotonic() > ends_s:
                break
            theirs = call(capsys, brokers[1].bootstrap, words)
        assert expected == differing
        return ours

    return run_on_both
