"""A producer that sends small records to each partition all the time, and records when each was acknowledged."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from bench.clusters.cluster import TimedOut

PERIOD_S = 0.1
"""Time between two records of a partition. It is long enough for brokers that have just started; otherwise the measured
times would be those of a queue: with 20 ms, a cold Apache Kafka took ten times as long.
"""
LOOK_S = 0.02

STALLED_S = 120.0

CLIENT = {
    "acks": "all",
    "linger.ms": 0,
    "message.timeout.ms": int(STALLED_S * 1000),
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "socket.nagle.disable": True,
    "log_level": 0,
}
"""Settings of the client, which looks for the next leader at once, so that the rest of the time is the cluster's."""


class Acknowledged(NamedTuple):
    """When a record was sent and when it was acknowledged, by `time.monotonic_ns()`."""

    sent_ns: int
    at_ns: int


class Prober:
    """Runs in a thread of its own between `start` and `stop`."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": bootstrap, **CLIENT})
        self._topic = topic
        self.acknowledged: list[list[Acknowledged]] = [[] for _ in range(partitions)]
        """By partition, in the order of the acknowledgements."""
        self.errors = 0
        """Number of records that the client has given up; zero as long as it may retry."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Starts, and returns once every partition has acknowledged a record. Raises TimedOut."""
        self._thread.start()
        self.wait_after(time.monotonic_ns(), range(len(self.acknowledged)))

    def stop(self) -> None:
        """Stops, once all records are acknowledged or given up."""
        self._stopped.set()
        self._thread.join()
        self._producer.flush(STALLED_S)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopped.is_set():
            for partition in range(len(self.acknowledged)):
                delivered = partial(self._delivered, partition, time.monotonic_ns())
                self._producer.produce(self._topic, b"probe", partition=partition, on_delivery=delivered)
            due += PERIOD_S
            while (left_s := due - time.monotonic()) > 0:
                self._producer.poll(left_s)
            self._producer.poll(0)

    def _delivered(self, partition: int, sent_ns: int, error: object, _: object) -> None:
        if error is None:
            self.acknowledged[partition].append(Acknowledged(sent_ns, time.monotonic_ns()))
        else:
            self.errors += 1

    def wait_after(self, moment_ns: int, partitions: Sequence[int]) -> list[int]:
        """Returns, for each partition, the time at which the first record sent after the moment was acknowledged.
        Raises TimedOut.
        """
        deadline = time.monotonic() + STALLED_S
        while None in (firsts := [self._first_after(moment_ns, partition) for partition in partitions]):
            if time.monotonic() > deadline:
                raise TimedOut(f"no record was acknowledged within {STALLED_S:.0f} s")
            time.sleep(LOOK_S)
        return [first for first in firsts if first is not None]

    def _first_after(self, moment_ns: int, partition: int) -> int | None:
        times = (record.at_ns for record in reversed(self.acknowledged[partition]) if record.sent_ns > moment_ns)
        return min(times, default=None)

    def pauses_ns(self) -> list[int]:
        """Returns the longest time between two acknowledgements, for each partition."""
        return [
            max((after.at_ns - before.at_ns for before, after in itertools.pairwise(times)), default=0)
            for times in self.acknowledged
        ]
