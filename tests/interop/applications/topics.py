"""The topic that an application reads and the one that it writes, and the judgement of the latter."""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
KEYS = 20
PAUSE_S = 1
"""Time for records that should not come."""

Record = tuple[str, str]
"""The key and the value."""


class Topics:
    """Writes the input and reads the output."""

    SOURCE, TARGET = "input", "output"

    def __init__(self, bootstrap: str) -> None:
        self.sent: list[Record] = []
        self.received: list[Record] = []
        self._bootstrap = bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (self.SOURCE, self.TARGET)]
        for created in admin.create_topics(topics).values():
            created.result()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
        )
        self._consumer.assign([TopicPartition(self.TARGET, partition, 0) for partition in range(PARTITIONS)])

    def send(self, count: int) -> None:
        """Writes records whose values are numbers, and waits until they are acknowledged."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True})
        for number in range(len(self.sent), len(self.sent) + count):
            record = f"key-{number % KEYS}", str(number)
            producer.produce(self.SOURCE, record[1], record[0])
            self.sent.append(record)
        assert producer.flush(60) == 0

    def read_until(self, is_reached: Callable[[], bool], timeout_s: float) -> None:
        """Reads the output until a condition holds."""
        deadline = time.monotonic() + timeout_s
        while not is_reached():
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(set(self.received))} of {len(self.sent)} records in {timeout_s} s")
            self._read(0.5)

    def _read(self, timeout_s: float) -> None:
        for message in self._consumer.consume(500, timeout_s):
            if not message.error():
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                self.received.append((key.decode(), value.decode()))

    def read_the_rest(self) -> None:
        """Reads records for a moment longer: a second output of a record comes after the last first one."""
        deadline = time.monotonic() + PAUSE_S
        while time.monotonic() < deadline:
            self._read(PAUSE_S / 4)

    def close(self) -> None:
        self._consumer.close()


def counted(sent: Iterable[Record]) -> list[Record]:
    """Returns the output of an application that counts the records of each key."""
    seen: Counter[str] = Counter()
    found: list[Record] = []
    for key, _ in sent:
        seen[key] += 1
        found.append((key, str(seen[key])))
    return found


def faults(expected: Iterable[Record], received: Iterable[Record], *, exactly_once: bool) -> list[str]:
    """Returns a line for each fault of an output: records that are lost, unknown, doubled, or out of order in a key."""
    wanted, found = list(expected), list(received)
    lost, unknown = set(wanted) - set(found), set(found) - set(wanted)
    lines = [f"{len(records)} records are {fault}: {sorted(records)[:3]}"
             for fault, records in (("lost", lost), ("unknown", unknown)) if records]  # fmt: skip
    if exactly_once:
        doubled = [record for record, count in Counter(found).items() if count > 1]
        lines += [f"{len(doubled)} records are doubled: {doubled[:3]}"] if doubled else []
        lines += [f"the records of {key} are out of order" for key in by_key(found) if not in_order(by_key(found)[key])]
    return lines


def by_key(records: Iterable[Record]) -> dict[str, list[int]]:
    values: dict[str, list[int]] = defaultdict(list)
    for key, value in records:
        values[key].append(int(value))
    return values


def in_order(values: list[int]) -> bool:
    return all(before <= after for before, after in itertools.pairwise(values))
