"""Transactions by confluent-kafka, which waits for the end of each. ProducerPerformance ends them at fixed intervals.

    python -m bench.clients.transactions VERB HOST:PORT TOPIC PAYLOADS [--records N] …

Prints a ToolResult as JSON, as `bench.clients.librdkafka` does.
"""

from __future__ import annotations

import threading
import time
from itertools import islice

from confluent_kafka import Producer

from bench.clients.librdkafka import (
    STALLED_S,
    WARM_UP_SHARE,
    ClientOptions,
    assign_from_start,
    consumer_of,
    producer_of,
    run,
    stamped,
    take,
    values_of,
)
from bench.figures import ToolResult, percentiles_ms

RECORDS_IN_ONE = 100
"""Number of records in a transaction, for a topic of which half is aborted."""


def transactional(options: ClientOptions) -> Producer:
    producer = producer_of(options, **{"transactional.id": options.topic})
    producer.init_transactions(STALLED_S)
    return producer


def commit(options: ClientOptions) -> ToolResult:
    """Commits `records` transactions one by one, each with a record in each partition."""
    producer, values = transactional(options), values_of(options)
    taken_ns: list[int] = []
    started = time.monotonic()
    for _ in range(options.records):
        began_ns = time.monotonic_ns()
        producer.begin_transaction()
        for partition in range(options.partitions):
            producer.produce(options.topic, next(values), partition=partition)
        producer.commit_transaction(STALLED_S)
        taken_ns.append(time.monotonic_ns() - began_ns)
    seconds = time.monotonic() - started
    return ToolResult(options.records, 0, seconds, percentiles_ms(taken_ns[len(taken_ns) // WARM_UP_SHARE :]))


def commit_each(options: ClientOptions, producer: Producer) -> None:
    """Commits transactions of one record each, one after the other."""
    for _ in range(options.records):
        producer.begin_transaction()
        producer.produce(options.topic, stamped(options), partition=0)
        producer.commit_transaction(STALLED_S)


def latency(options: ClientOptions) -> ToolResult:
    """Measures the time from produce to receipt by a waiting read-committed consumer, with one record in each
    transaction.
    """
    producer = transactional(options)
    taken_ns: list[int] = []
    with consumer_of(options, "latency", **{"isolation.level": "read_committed"}) as consumer:
        assign_from_start(consumer, options)
        started = time.monotonic()
        threading.Thread(target=commit_each, args=(options, producer), daemon=True).start()
        while len(taken_ns) < options.records:
            (value,) = take(consumer, 1)
            taken_ns.append(time.monotonic_ns() - int.from_bytes(value[:8], "big"))
        seconds = time.monotonic() - started
    counted = taken_ns[len(taken_ns) // WARM_UP_SHARE :]
    return ToolResult(options.records, options.records * options.record_bytes, seconds, percentiles_ms(counted))


def half_aborted(options: ClientOptions) -> ToolResult:
    """Alternately aborts and commits transactions of a hundred records, until `records` are committed."""
    producer, values = transactional(options), values_of(options)
    started = time.monotonic()
    for _ in range(options.records // RECORDS_IN_ONE):
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number, value in enumerate(islice(values, RECORDS_IN_ONE)):
                producer.produce(options.topic, value, partition=number % options.partitions)
            producer.flush(STALLED_S)  # aborted records must be in the log, too
            end(STALLED_S)
    return ToolResult(options.records, options.records * options.record_bytes, time.monotonic() - started)


if __name__ == "__main__":
    run({"commit": commit, "latency": latency, "half-aborted": half_aborted})
