from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer
from sorting import ACCEPTED, ORDERS, REJECTED, Sorting

from odradek.testing import Broker
from odradek.testing.fixtures import broker_fixture

broker = broker_fixture()


@pytest.fixture(autouse=True)
def sorting(broker: Broker) -> Iterator[Sorting]:
    for topic in (ORDERS, ACCEPTED, REJECTED):
        broker.create_topic(topic)
    sorting = Sorting(broker.client_kwargs())
    sorting.start()
    yield sorting
    sorting.stop()


def order(broker: Broker, *values: bytes) -> None:
    producer = KafkaProducer(**broker.client_kwargs())
    for value in values:
        producer.send(ORDERS, value)
    producer.flush(30)
    producer.close()


def test_an_order_that_makes_no_sense_is_put_aside(broker: Broker) -> None:
    order(broker, b'{"amount": 1}', b'{"amount": -1}', b"\xff", b"[]")
    broker.wait_for_lag("sorting", topic=ORDERS)
    assert [record.value for record in broker.records(ACCEPTED)] == [b'{"amount": 1}']
    reasons = [dict(record.headers)["reason"] for record in broker.records(REJECTED)]
    assert reasons == [b"an amount that is not positive", b"no JSON", b"no amount"]


def test_a_broker_that_stands_still_is_survived(broker: Broker) -> None:
    broker.wait_for_group("sorting", members=1)
    with broker.paused():
        time.sleep(0.5)  # it is the test: nothing is answered for as long
    order(broker, b'{"amount": 1}')
    broker.wait_for_lag("sorting", topic=ORDERS)
    assert len(broker.records(ACCEPTED)) == 1


def test_an_older_broker_is_good_enough(broker: Broker) -> None:
    with broker.fault(release="2.8"):  # kafka-python 3.0 sends InitProducerId v4 to older ones, too
        order(broker, b'{"amount": 1}')
        broker.wait_for_lag("sorting", topic=ORDERS)
    assert len(broker.records(ACCEPTED)) == 1
