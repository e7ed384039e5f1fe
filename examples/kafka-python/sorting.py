"""Sorts orders: those that make no sense go to a topic of their own, with the reason in a header."""

from __future__ import annotations

import json
import threading

from kafka import KafkaConsumer, KafkaProducer

ORDERS, ACCEPTED, REJECTED = "orders", "accepted", "rejected"


class Sorting(threading.Thread):
    """Runs until `stop`. An offset is committed once the broker has acknowledged the sorted order."""

    def __init__(self, arguments: dict[str, object]) -> None:
        super().__init__(name="sorting")
        self._stopped = threading.Event()
        self._consumer = KafkaConsumer(
            ORDERS, group_id="sorting", auto_offset_reset="earliest", enable_auto_commit=False, **arguments
        )
        self._producer = KafkaProducer(acks="all", retries=10, **arguments)

    def run(self) -> None:
        while not self._stopped.is_set():
            polled = self._consumer.poll(timeout_ms=100)
            sent = [self._sort(record.value) for records in polled.values() for record in records]
            for future in sent:
                future.get(timeout=60)
            if sent:
                self._consumer.commit()
        self._consumer.close()
        self._producer.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def _sort(self, value: bytes):  # type: ignore[no-untyped-def]
        reason = reason_against(value)
        if reason is None:
            return self._producer.send(ACCEPTED, value)
        return self._producer.send(REJECTED, value, headers=[("reason", reason.encode())])


def reason_against(value: bytes) -> str | None:
    """Returns why an order makes no sense."""
    try:
        order = json.loads(value)
    except ValueError:
        return "no JSON"
    if not isinstance(order, dict) or not isinstance(order.get("amount"), int):
        return "no amount"
    return None if order["amount"] > 0 else "an amount that is not positive"
