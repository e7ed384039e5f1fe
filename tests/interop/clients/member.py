"""A consumer in a group, as a process: `python -m tests.interop.clients.member KIND BOOTSTRAP TOPIC GROUP KEY=VALUE…`.

It reads and commits until its standard input ends, and then leaves. It prints a line for each event:

    assigned 0,1         its assigned partitions from now on
    record 0 17          partition and offset of a record
    committed            all records so far are committed
    error …              an error of its client

KEY=VALUE are options of this program: `instance`, `strategy`, `session_ms`, `protocol` (confluent-kafka only).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

POLL_S = 0.1


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def say_assigned(partitions: Iterable[int]) -> None:
    say("assigned", ",".join(map(str, sorted(partitions))))


def kafka_python(bootstrap: str, topic: str, group: str, options: dict[str, str], stop: threading.Event) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import RetriableError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            say_assigned(partition.partition for partition in assigned)

    strategies = {"range": RangePartitionAssignor, "sticky": StickyPartitionAssignor}
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(options.get("session_ms", 6000)),
        heartbeat_interval_ms=500,
        partition_assignment_strategy=[strategies[options.get("strategy", "range")]],
    )
    consumer.subscribe([topic], listener=Listener())
    while not stop.is_set():
        try:
            polled = consumer.poll(timeout_ms=int(POLL_S * 1000))
        except RetriableError as error:  # it asked for metadata while no broker ran
            say("error", repr(error))
            continue
        for records in polled.values():
            for record in records:
                say("record", record.partition, record.offset)
        if polled:
            attempt(consumer.commit)
    consumer.close()


def confluent(bootstrap: str, topic: str, group: str, options: dict[str, str], stop: threading.Event) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if options.get("protocol") == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = int(options.get("session_ms", 6000))
        settings["heartbeat.interval.ms"] = 500
        settings["partition.assignment.strategy"] = options.get("strategy", "range")
    if "instance" in options:
        settings["group.instance.id"] = options["instance"]
    consumer = Consumer(settings)

    def tell(_consumer: Any, _partitions: Any) -> None:
        say("rebalance")

    consumer.subscribe([topic], on_assign=tell, on_revoke=tell)
    before: list[int] | None = None
    while not stop.is_set():
        records = [record for record in consumer.consume(100, POLL_S) if not record.error()]
        assigned = sorted(partition.partition for partition in consumer.assignment())
        if assigned != before:
            before = assigned
            say_assigned(assigned)
        for record in records:
            say("record", record.partition(), record.offset())
        if records:
            attempt(lambda: consumer.commit(asynchronous=False), KafkaException)
    consumer.close()


def aiokafka(bootstrap: str, topic: str, group: str, options: dict[str, str], stop: threading.Event) -> None:
    asyncio.run(_aiokafka(bootstrap, topic, group, options, stop))


async def _aiokafka(bootstrap: str, topic: str, group: str, options: dict[str, str], stop: threading.Event) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.abc import ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.errors import KafkaError

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            say_assigned(partition.partition for partition in assigned)

    strategies = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=options.get("instance"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(options.get("session_ms", 6000)),
        heartbeat_interval_ms=500,
        partition_assignment_strategy=[strategies[options.get("strategy", "roundrobin")]],
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not stop.is_set():
        polled = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
        for records in polled.values():
            for record in records:
                say("record", record.partition, record.offset)
        if polled:
            try:
                await consumer.commit()
                say("committed")
            except KafkaError as error:
                say("error", repr(error))
    await consumer.stop()


def attempt(commit: Callable[[], object], expected: type[Exception] = Exception) -> None:
    """Commits; if that fails, the partition's next owner reads the records again."""
    try:
        commit()
        say("committed")
    except expected as error:
        say("error", repr(error))


KINDS = {"kafka-python": kafka_python, "confluent": confluent, "aiokafka": aiokafka}


def main(kind: str, bootstrap: str, topic: str, group: str, *words: str) -> None:
    stop = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    KINDS[kind](bootstrap, topic, group, dict(word.split("=", 1) for word in words), stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
