"""Members of a group as processes, of any client, and their output."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from tests.interop import jvm, node
from tests.interop.brokers import Broker
from tests.interop.processes import ROOT
from tests.waiting import wait_until

WAIT_S = 60
PARTITIONS = 4
COUNT = 50
"""Number of records that `write` writes to each partition."""

JAVA_SETTINGS = ("session.timeout.ms=6000", "heartbeat.interval.ms=500")


class Flavour(NamedTuple):
    """A client, with one of its ways to be a group member."""

    name: str
    command: Callable[[str, str, str], list[str]]
    """Returns the command line for (bootstrap, topic, group)."""
    odradek_only: bool = False  # Apache Kafka 4 no longer speaks with it


def _python(kind: str, *options: str) -> Callable[[str, str, str], list[str]]:
    program = [sys.executable, "-m", "tests.interop.clients.member", kind]
    return lambda bootstrap, topic, group: [*program, bootstrap, topic, group, *options]


def _java(version: str, *settings: str) -> Callable[[str, str, str], list[str]]:
    def command(bootstrap: str, topic: str, group: str) -> list[str]:
        return jvm.java(jvm.compiled("Member.java", version), "Member", bootstrap, topic, group, *settings)

    return command


def _kafkajs(bootstrap: str, topic: str, group: str) -> list[str]:
    return ["node", str(node.installed() / "member.js"), bootstrap, topic, group]


COOPERATIVE = "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
FLAVOURS = (
    Flavour("kafka-python", _python("kafka-python")),
    Flavour("aiokafka", _python("aiokafka")),
    Flavour("confluent", _python("confluent")),
    Flavour("confluent-cooperative", _python("confluent", "strategy=cooperative-sticky")),
    Flavour("kafkajs", _kafkajs),
    Flavour("java-4.3.1", _java("4.3.1", *JAVA_SETTINGS)),
    Flavour("java-4.3.1-cooperative", _java("4.3.1", *JAVA_SETTINGS, COOPERATIVE)),
    Flavour("java-2.8.2", _java("2.8.2", *JAVA_SETTINGS)),
    Flavour("java-0.10.2.2", _java("0.10.2.2", *JAVA_SETTINGS), odradek_only=True),
)
BY_NAME = {flavour.name: flavour for flavour in FLAVOURS} | {
    "aiokafka-range": Flavour("aiokafka-range", _python("aiokafka", "strategy=range"))
}


CONSUMER_PROTOCOL = (
    Flavour("confluent-consumer", _python("confluent", "protocol=consumer")),
    Flavour("java-4.3.1-consumer", _java("4.3.1", "group.protocol=consumer")),
)
"""The clients of the consumer protocol (KIP-848), whose intervals the broker sets."""


def static_consumer(kind: str, instance: str) -> Flavour:
    """Returns a static member of the consumer protocol."""
    if kind == "java":
        settings = ("group.protocol=consumer", f"group.instance.id={instance}")
        return Flavour(f"java-consumer-{instance}", _java("4.3.1", *settings))
    return Flavour(f"{kind}-consumer-{instance}", _python(kind, "protocol=consumer", f"instance={instance}"))


def static(kind: str, instance: str) -> Flavour:
    """Returns a static member (KIP-345), with a session that is longer than its restart on a busy machine."""
    if kind == "java":
        settings = (*JAVA_SETTINGS, "session.timeout.ms=30000", f"group.instance.id={instance}")
        return Flavour(f"java-{instance}", _java("4.3.1", *settings))
    return Flavour(f"{kind}-{instance}", _python(kind, f"instance={instance}", "session_ms=30000"))


def long_session(kind: str, instance: str) -> Flavour:
    """Returns a static member whose place is kept for a minute after its death."""
    return Flavour(f"{kind}-{instance}", _python(kind, f"instance={instance}", "session_ms=60000"))


class Member:
    """A process in a group."""

    def __init__(self, flavour: Flavour, bootstrap: str, topic: str, group: str, log: Path) -> None:
        self.name = flavour.name
        self.records: list[tuple[int, int]] = []
        self.assignments: list[list[int]] = []
        self.rebalances = 0
        self.errors: list[str] = []
        self.words: list[str] = []
        """Returns the first word of each of its lines."""
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                flavour.command(bootstrap, topic, group),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            self.words.append(word)
            if word == "record":
                partition, offset = rest.split()
                self.records.append((int(partition), int(offset)))
            elif word == "assigned":
                self.assignments.append([int(number) for number in rest.split(",") if number])
            elif word == "rebalance":
                self.rebalances += 1
            elif word == "error":
                self.errors.append(rest)
        if (code := self._process.wait()) > 0:
            self.errors.append(f"the process ended with {code}; its traceback is in {self._log}")

    @property
    def owned(self) -> list[int]:
        return self.assignments[-1] if self.assignments else []

    def kill(self) -> None:
        """Kills the process: it does not leave the group."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def leave(self) -> None:
        """Ends the process cleanly, which leaves the group (unless the member is static)."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end") from None
        self._reader.join()


def shared_out(members: Sequence[Member], partitions: int) -> bool:
    """True if each partition has one owner, and every member that can have a partition has one."""
    owners = Counter(partition for member in members for partition in member.owned)
    return owners == Counter(range(partitions)) and all(member.owned for member in members[:partitions])


def seen_by(members: Iterable[Member]) -> Counter[tuple[int, int]]:
    """Returns how often each record was delivered to any member."""
    return Counter(record for member in members for record in list(member.records))


def write(broker: Broker, topic: str, count: int = COUNT) -> None:
    """Writes `count` records to each partition."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for partition, number in itertools.product(range(PARTITIONS), range(count)):
        producer.produce(topic, f"{partition} {number}".encode(), partition=partition)
    assert not producer.flush(30)


def everything_seen(members: Sequence[Member], count: int = COUNT) -> None:
    expected = set(itertools.product(range(PARTITIONS), range(count)))
    wait_until(
        lambda: seen_by(members).keys() >= expected,
        lambda: f"missing {sorted(expected - seen_by(members).keys())[:10]}, {[m.errors[-2:] for m in members]}",
    )


def is_shared(members: Sequence[Member]) -> None:
    wait_until(lambda: shared_out(members, PARTITIONS), lambda: [(m.name, m.owned, m.errors) for m in members])


def share_and_give_up(broker: Broker, topic: str, join: Callable[[], Member]) -> None:
    """Lets three consumers share a topic; one leaves, and one is killed."""
    write(broker, topic)
    first = join()
    everything_seen([first])
    others = [join(), join()]
    is_shared([first, *others])
    write(broker, topic)
    everything_seen([first, *others], 2 * COUNT)
    assert set(seen_by([first, *others]).values()) == {1}, "a record was read twice though nobody failed"
    first.leave()
    is_shared(others)
    others[0].kill()
    is_shared(others[1:])
    write(broker, topic)
    everything_seen([first, *others], 3 * COUNT)
