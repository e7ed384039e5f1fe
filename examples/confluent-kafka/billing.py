"""Writes an invoice for each order, exactly once: what is read and what is written is one transaction."""

from __future__ import annotations

import threading

from confluent_kafka import Consumer, KafkaException, Producer

ORDERS, INVOICES = "orders", "invoices"


class Billing(threading.Thread):
    """Runs until `stop`. An error that ends the transaction is met by doing it again."""

    def __init__(self, config: dict[str, str]) -> None:
        super().__init__(name="billing")
        self._stopped = threading.Event()
        self._consumer = Consumer(
            {
                **config,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._producer = Producer({**config, "transactional.id": "billing", "transaction.timeout.ms": 10_000})

    def run(self) -> None:
        self._producer.init_transactions()
        self._consumer.subscribe([ORDERS])
        while not self._stopped.is_set():
            messages = [one for one in self._consumer.consume(100, timeout=0.1) if one.error() is None]
            if messages:
                self._bill([one.value() for one in messages])
        self._consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def _bill(self, orders: list[bytes]) -> None:
        self._producer.begin_transaction()
        try:
            for order in orders:
                self._producer.produce(INVOICES, b"invoice for " + order)
            self._producer.send_offsets_to_transaction(
                self._consumer.position(self._consumer.assignment()), self._consumer.consumer_group_metadata()
            )
            self._producer.commit_transaction()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._producer.abort_transaction()
            self._rewind()

    def _rewind(self) -> None:
        """Moves the consumer back to the group's committed offsets, because the aborted transaction's reads don't
        count."""
        for partition in self._consumer.committed(self._consumer.assignment()):
            partition.offset = max(partition.offset, 0)  # a group that has committed nothing is at the start
            self._consumer.seek(partition)
