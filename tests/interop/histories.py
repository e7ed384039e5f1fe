"""Real producers and consumers that continue while nodes are killed, and record a history that can be checked."""

from __future__ import annotations

import random
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.interop.consumed import error_of, offset_of, partition_of, value_of
from tests.interop.load import BROKER_IS_AWAY, RECONNECT
from tests.simulation.transaction_history import UNKNOWN_TIME_MS, History, Outcome, Reader, Seen, Transaction, Write

TOPIC = "histories"
PARTITIONS = 3
TRANSACTION_TIMEOUT_MS = 10_000
CALL_TIMEOUT_S = 60


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class TransactionalWriter(threading.Thread):
    """Runs transactions continuously. Sometimes it abandons its producer, and a new producer takes over the id."""

    def __init__(self, bootstrap: str, history: History, name: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.name = name
        self.history = history
        self.faults: list[str] = []
        self._servers = bootstrap
        self._dice = random.Random(seed)
        self._stop_asked = threading.Event()
        self._count = 0
        self._producer = self._new_producer()

    def _new_producer(self) -> Producer:
        settings = {"transactional.id": self.name, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, "linger.ms": 1}
        producer = Producer({"bootstrap.servers": self._servers, **settings, **RECONNECT})
        while True:
            try:
                producer.init_transactions(CALL_TIMEOUT_S)
                return producer
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                self._one_transaction()
            except KafkaException as error:
                if not error.args[0].fatal():
                    self.faults.append(str(error))
                self._producer = self._new_producer()

    def finish(self) -> None:
        self._stop_asked.set()
        self.join(CALL_TIMEOUT_S)
        if self.is_alive():
            self.faults.append(f"{self.name} hangs")

    def _one_transaction(self) -> None:
        transaction = Transaction(f"{self.name}/{self._count}")
        self._count += 1
        self.history.transactions.append(transaction)
        self._producer.begin_transaction()
        for number in range(self._dice.randint(1, 12)):
            write = Write(self._dice.randrange(PARTITIONS), f"{transaction.name}:{number}")
            transaction.writes.append(write)
            self._producer.produce(TOPIC, write.value, partition=write.partition)
        if self._dice.random() < 0.3:
            self._producer.flush(1)
        if self._dice.random() < 0.05:
            self._producer = self._new_producer()  # which fences the one that is in the middle of it
        elif self._dice.random() < 0.2:
            self._producer.abort_transaction(CALL_TIMEOUT_S)
        else:
            self._commit(transaction)

    def _commit(self, transaction: Transaction) -> None:
        """Commits, with retries as long as they make sense; aborts if librdkafka requires it."""
        transaction.commit_asked_ms = now_ms()
        transaction.outcome = Outcome.UNKNOWN
        while True:
            try:
                self._producer.commit_transaction(CALL_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].retriable():
                    continue
                if error.args[0].txn_requires_abort():
                    self._producer.abort_transaction(CALL_TIMEOUT_S)
                    return
                raise
            transaction.outcome = Outcome.COMMITTED
            return


class HistoryReader(threading.Thread):
    """Reads all partitions from their start to the given ends."""

    def __init__(self, bootstrap: str, history: History, *, committed: bool) -> None:
        super().__init__(daemon=True)
        isolation = "read_committed" if committed else "read_uncommitted"
        self.reader = Reader(isolation, committed=committed)
        history.readers.append(self.reader)
        self.faults: list[str] = []
        settings = {"group.id": "unused", "isolation.level": isolation, "auto.offset.reset": "error"}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **RECONNECT})
        self._consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            for message in self._consumer.consume(500, timeout=0.05):
                if message.error() is None:
                    seen = Seen(partition_of(message), offset_of(message), value_of(message).decode(), now_ms())
                    self.reader.seen.append(seen)
                elif error_of(message).code() not in BROKER_IS_AWAY:
                    self.faults.append(str(message.error()))
        self._consumer.close()

    def finish(self) -> None:
        self._stop_asked.set()
        self.join(CALL_TIMEOUT_S)


def read_to_the_end(bootstrap: str) -> list[Seen]:
    """Reads all committed records with a new consumer."""
    settings = {"group.id": "unused", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    reads: list[Seen] = []
    ends = 0
    while ends < PARTITIONS:
        message = consumer.poll(CALL_TIMEOUT_S)
        assert message is not None, "the end never comes: a transaction hangs"
        if message.error() is not None:
            ends += 1
        else:
            reads.append(Seen(partition_of(message), offset_of(message), value_of(message).decode(), UNKNOWN_TIME_MS))
    consumer.close()
    return reads
