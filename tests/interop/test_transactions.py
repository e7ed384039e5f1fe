"""Transactions of real clients: what commits is seen, what aborts is not, and exactly once."""

from __future__ import annotations

import pytest

from tests.interop import jvm
from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.transactions import COMMITTED, TRANSACTIONAL, UNCOMMITTED, Transaction

WRITTEN = [
    Transaction(["a1", "a2"], committed=True, group="readers", offset=1),
    Transaction(["b1"], committed=False, group="readers", offset=2),
    Transaction(["c1", "c2", "c3"], committed=True),
    Transaction(["d1"], committed=False),
    Transaction(["e1"], committed=True, group="readers", offset=7),
    Transaction(["f1", "f2"], committed=False, group="readers", offset=9),
]
ALL = [value for each in WRITTEN for value in each.values]
SEEN = [value for each in WRITTEN if each.committed for value in each.values]

READERS = ("confluent", "aiokafka", "kafka-python", "java-0.11.0.3", "java-4.3.1")


def committed_offset(broker: Broker, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "isolation.level": COMMITTED})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    return int(found.offset)


@pytest.mark.parametrize("client", TRANSACTIONAL)
def test_what_a_client_commits_is_seen_and_what_it_aborts_is_not(
    shared_broker: Broker, topic: str, client: str
) -> None:
    Confluent().create(shared_broker.bootstrap, topic)
    group = f"{topic}-readers"
    transactions = [each._replace(group=group if each.group else None) for each in WRITTEN]
    TRANSACTIONAL[client].transact(shared_broker.bootstrap, topic, f"{topic}-id", transactions)
    assert TRANSACTIONAL["confluent"].read(shared_broker.bootstrap, topic, COMMITTED) == SEEN
    assert TRANSACTIONAL["confluent"].read(shared_broker.bootstrap, topic, UNCOMMITTED) == ALL
    assert committed_offset(shared_broker, group, topic) == 7


@pytest.mark.parametrize("client", READERS)
def test_readers_of_both_isolation_levels_side_by_side(shared_broker: Broker, topic: str, client: str) -> None:
    Confluent().create(shared_broker.bootstrap, topic)
    TRANSACTIONAL["confluent"].transact(shared_broker.bootstrap, topic, f"{topic}-id", WRITTEN[2:4])
    reader = TRANSACTIONAL[client]
    assert reader.read(shared_broker.bootstrap, topic, COMMITTED) == ["c1", "c2", "c3"]
    assert reader.read(shared_broker.bootstrap, topic, UNCOMMITTED) == ["c1", "c2", "c3", "d1"]


@pytest.mark.parametrize("version", ["0", "1"])
def test_clusters_of_an_older_transaction_version(broker: Broker, topic: str, version: str) -> None:
    Confluent().create(broker.bootstrap, topic)
    feature = f"transaction.version={version}"
    jvm.tool("kafka-features", "--bootstrap-server", broker.bootstrap, "downgrade", "--feature", feature)
    for client in ("java-4.3.1", "confluent"):
        TRANSACTIONAL[client].transact(broker.bootstrap, topic, f"{topic}-{client}", WRITTEN)
    assert TRANSACTIONAL["java-4.3.1"].read(broker.bootstrap, topic, COMMITTED) == SEEN * 2
    jvm.tool("kafka-features", "--bootstrap-server", broker.bootstrap, "upgrade", "--feature", "transaction.version=2")
    TRANSACTIONAL["java-4.3.1"].transact(broker.bootstrap, topic, f"{topic}-java-4.3.1", WRITTEN)
    assert TRANSACTIONAL["java-4.3.1"].read(broker.bootstrap, topic, COMMITTED) == SEEN * 3
