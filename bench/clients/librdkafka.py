"""Loops around confluent-kafka, which is librdkafka, because librdkafka's own tools don't offer them in one program.

    python -m bench.clients.librdkafka VERB HOST:PORT TOPIC PAYLOADS [--records N] …

Prints a ToolResult as JSON. librdkafka does its I/O in its own threads; the loops only feed and drain it.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from bench.figures import ToolResult, percentiles_ms

BATCH = 1_000
POLL_S = 1.0
STALLED_S = 30.0
# With the first messages, connections and caches are cold; a tenth of the messages is left out of the latencies.
WARM_UP_SHARE = 10
NOW_BYTES = 8
RETRY_S = 0.05
NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


class Stalled(Exception):
    """Nothing has arrived for so long that there must be an error."""


class ClientOptions(argparse.Namespace):
    """The command line."""

    verb: str
    bootstrap: str
    topic: str
    payloads: Path
    records: int
    record_bytes: int
    clients: int
    partitions: int
    rate: int
    set: list[str]

    @property
    def client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **dict(text.split("=", 1) for text in self.set)}


def fail(error: KafkaError) -> None:
    raise KafkaException(error)


def producer_of(options: ClientOptions, **properties: str) -> Producer:
    """Returns a producer that reports only failed deliveries."""

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            fail(error)

    fixed = {"delivery.report.only.error": True, "on_delivery": delivered, "socket.nagle.disable": True}
    return Producer({**fixed, **options.client, **properties})


@contextmanager
def consumer_of(options: ClientOptions, group: str, **properties: str) -> Iterator[Consumer]:
    fixed = {
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "socket.nagle.disable": True,
        # By default, a full queue stops fetching for a second, which makes fast brokers look slow.
        "fetch.queue.backoff.ms": 1,
    }
    consumer = Consumer({**fixed, **options.client, **properties})
    try:
        yield consumer
    finally:
        consumer.close()


def assign_from_start(consumer: Consumer, options: ClientOptions) -> None:
    consumer.assign([TopicPartition(options.topic, number, 0) for number in range(options.partitions)])


def take(consumer: Consumer, count: int) -> list[bytes]:
    """Returns the next `count` values; fewer if none arrives for a second.

    Raises Stalled if there are none at all, KafkaException if a partition fails.
    """
    deadline = time.monotonic() + STALLED_S
    while time.monotonic() < deadline:
        messages = consumer.consume(count, POLL_S)
        for message in messages:
            if (error := message.error()) is not None:
                fail(error)
        if messages:
            return [message.value() or b"" for message in messages]
    raise Stalled(f"no record for {STALLED_S} s")


def values_of(options: ClientOptions) -> Iterator[bytes]:
    """Yields the values in the file, again and again."""
    return cycle(options.payloads.read_bytes().split(b"\n"))


def flush(producer: Producer) -> None:
    """Waits until all records are acknowledged. Raises Stalled if no further record is acknowledged for a while."""
    before = len(producer)
    while left := producer.flush(STALLED_S):
        if left >= before:
            raise Stalled(f"{left} records were not acknowledged, and none of them for {STALLED_S} s")
        before = left


def produce(options: ClientOptions) -> ToolResult:
    """Produces records by each producer in turn, to each partition in turn."""
    producers = [producer_of(options) for _ in range(options.clients)]
    values = values_of(options)
    started = time.monotonic()
    for number in range(options.records):
        producer = producers[number % options.clients]
        partition = number % options.partitions
        while True:
            try:
                producer.produce(options.topic, next(values), partition=partition)
                break
            except BufferError:
                producer.poll(POLL_S)
    for producer in producers:
        flush(producer)
    return ToolResult(options.records, options.records * options.record_bytes, time.monotonic() - started)


def consume(options: ClientOptions) -> ToolResult:
    """Consumes all records of the topic by each consumer, with manual assignment."""

    def drain(number: int) -> int:
        with consumer_of(options, f"assigned-{number}") as consumer:
            assign_from_start(consumer, options)
            count = size_bytes = 0
            while count < options.records:
                values = take(consumer, min(BATCH, options.records - count))
                count += len(values)
                size_bytes += sum(map(len, values))
            return size_bytes

    started = time.monotonic()
    with ThreadPoolExecutor(options.clients) as pool:
        size_bytes = sum(pool.map(drain, range(options.clients)))
    return ToolResult(options.records * options.clients, size_bytes, time.monotonic() - started)


def stamped(options: ClientOptions) -> bytes:
    """Returns a value that begins with its creation time."""
    return time.monotonic_ns().to_bytes(NOW_BYTES, "big").ljust(options.record_bytes, b"x")


def steadily(options: ClientOptions, producer: Producer) -> None:
    """Produces at the rate; after a pause, catches up on the records that were due."""
    started = time.monotonic()
    for number in range(options.records):
        time.sleep(max(0.0, started + number / options.rate - time.monotonic()))
        producer.produce(options.topic, stamped(options), partition=0)


def latency(options: ClientOptions) -> ToolResult:
    """Measures the time from produce to receipt by a waiting consumer: one record after the other, or at a steady
    rate.
    """
    producer = producer_of(options, **{"linger.ms": "0"})
    taken_ns: list[int] = []
    with consumer_of(options, "latency") as consumer:
        assign_from_start(consumer, options)
        producer.produce(options.topic, stamped(options), partition=0)
        take(consumer, 1)  # both clients are connected now
        started = time.monotonic()
        if options.rate:
            threading.Thread(target=steadily, args=(options, producer), daemon=True).start()
        while len(taken_ns) < options.records:
            if not options.rate:
                producer.produce(options.topic, stamped(options), partition=0)
            (value,) = take(consumer, 1)
            taken_ns.append(time.monotonic_ns() - int.from_bytes(value[:NOW_BYTES], "big"))
        seconds = time.monotonic() - started
    counted = taken_ns[len(taken_ns) // WARM_UP_SHARE :]
    return ToolResult(options.records, options.records * options.record_bytes, seconds, percentiles_ms(counted))


def join(options: ClientOptions) -> ToolResult:
    """Measures the time from the start of a group's consumers until each of them has a record, each time in a new
    group.
    """
    taken_ns: list[int] = []
    started = time.monotonic()
    for number in range(options.records):
        began_ns = time.monotonic_ns()
        group, first_ns = f"join-{began_ns}-{number}", list[int]()
        with ThreadPoolExecutor(options.clients) as pool:
            members = [pool.submit(belong, options, group, first_ns) for _ in range(options.clients)]
        for member in members:
            member.result()
        taken_ns.append(max(first_ns) - began_ns)
    return ToolResult(options.records, 0, time.monotonic() - started, percentiles_ms(taken_ns))


def belong(options: ClientOptions, group: str, first_ns: list[int]) -> None:
    """Runs one member until all members have reported their first record, because a member that doesn't poll blocks the
    others.
    """
    with consumer_of(options, group) as consumer:
        consumer.subscribe([options.topic])
        take(consumer, 1)
        first_ns.append(time.monotonic_ns())
        deadline = time.monotonic() + STALLED_S
        while len(first_ns) < options.clients and time.monotonic() < deadline:
            consumer.consume(BATCH, RETRY_S)


def commit_first(consumer: Consumer, topic: str) -> None:
    """Commits once, with retries until the coordinator is available: the first group makes a broker create its
    topic.
    """
    deadline = time.monotonic() + STALLED_S
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
            return
        except KafkaException as error:
            if time.monotonic() > deadline or error.args[0].code() not in NOT_YET:
                raise
            time.sleep(RETRY_S)


def commit(options: ClientOptions) -> ToolResult:
    """Commits offsets one by one, and waits for each."""
    taken_ns: list[int] = []
    with consumer_of(options, f"commit-{options.topic}") as consumer:
        commit_first(consumer, options.topic)
        started = time.monotonic()
        for offset in range(options.records):
            began_ns = time.monotonic_ns()
            consumer.commit(offsets=[TopicPartition(options.topic, 0, offset)], asynchronous=False)
            taken_ns.append(time.monotonic_ns() - began_ns)
        seconds = time.monotonic() - started
    return ToolResult(options.records, 0, seconds, percentiles_ms(taken_ns))


VERBS: Mapping[str, Callable[[ClientOptions], ToolResult]] = {
    verb.__name__: verb for verb in (produce, consume, latency, join, commit)
}


def run(verbs: Mapping[str, Callable[[ClientOptions], ToolResult]]) -> None:
    """Runs the verb of the command line and prints its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=verbs)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("payloads", type=Path)
    for name, default in (("records", 1), ("record-bytes", 1_000), ("clients", 1), ("partitions", 1), ("rate", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args(namespace=ClientOptions())
    work = verbs[options.verb](options)
    print(work.as_json())


if __name__ == "__main__":
    run(VERBS)
