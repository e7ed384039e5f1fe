from __future__ import annotations

from collections.abc import Iterator

import pytest
from billing import INVOICES, ORDERS, Billing
from confluent_kafka import Producer

from odradek.testing import Broker
from odradek.testing.fixtures import broker_fixture

broker = broker_fixture()
COUNT = 50
EXPECTED = sorted(b"invoice for %d" % number for number in range(COUNT))


@pytest.fixture(autouse=True)
def billing(broker: Broker) -> Iterator[Billing]:
    broker.create_topic(ORDERS, partitions=3)
    broker.create_topic(INVOICES, partitions=2)
    billing = Billing(broker.client_config())
    billing.start()
    yield billing
    billing.stop()


def order(broker: Broker) -> None:
    producer = Producer({**broker.client_config(), "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce(ORDERS, str(number))
    assert producer.flush(30) == 0


def invoices(broker: Broker) -> list[bytes | None]:
    return sorted(record.value or b"" for record in broker.records(INVOICES, isolation="read_committed"))


def test_each_order_has_an_invoice(broker: Broker) -> None:
    order(broker)
    broker.wait_for_lag("billing", topic=ORDERS)
    assert invoices(broker) == EXPECTED


def test_orders_that_are_sent_again_are_billed_once(broker: Broker) -> None:
    with broker.fault(api="Produce", topic=ORDERS, disconnect=True, when="after", times=1) as fault:
        order(broker)
        broker.wait_for_lag("billing", topic=ORDERS)
    assert fault.fired == 1
    assert invoices(broker) == EXPECTED


def test_a_transaction_that_is_aborted_is_done_again(broker: Broker) -> None:
    with broker.fault(api="Produce", topic=INVOICES, error="INVALID_RECORD", times=1) as fault:
        order(broker)
        broker.wait_for_lag("billing", topic=ORDERS)
    assert fault.fired == 1
    assert invoices(broker) == EXPECTED


def test_a_broker_that_crashes_loses_no_order(broker: Broker) -> None:
    order(broker)
    broker.kill()
    broker.restart()
    broker.wait_for_lag("billing", topic=ORDERS)
    assert invoices(broker) == EXPECTED
