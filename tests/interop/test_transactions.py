"""Tests transactions of real clients: committed records are seen, aborted ones are not, and exactly once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.interop import copying, histories, jvm
from tests.interop.brokers import Broker
from tests.interop.clients.confluent import Confluent
from tests.interop.clients.transactions import COMMITTED, TRANSACTIONAL, UNCOMMITTED, Transaction
from tests.simulation.transaction_history import History, Outcome

WRITTEN = [
    Transaction(["a1", "a2"], committed=True, group="readers", offset=1),
    Transaction(["b1"], committed=False, group="readers", offset=2),
    Transaction(["c1", "c2", "c3"], committed=True),
    Transaction(["d1"], committed=False),
    Transaction(["e1"], committed=True, group="readers", offset=7),
    Transaction(["f1", "f2"], committed=False, group="readers", offset=9),
]
ALL = [value for transaction in WRITTEN for value in transaction.values]
SEEN = [value for transaction in WRITTEN if transaction.committed for value in transaction.values]

KILLS = 12
"""Number of kills, of the broker or a copier in turn."""

READERS = ("confluent", "aiokafka", "kafka-python", "java-0.11.0.3", "java-4.3.1")


def committed_offset(broker: Broker, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "isolation.level": COMMITTED})
    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    return int(committed.offset)


@pytest.mark.parametrize("client", TRANSACTIONAL)
def test_what_a_client_commits_is_seen_and_what_it_aborts_is_not(
    shared_broker: Broker, topic: str, client: str
) -> None:
    Confluent().create(shared_broker.bootstrap, topic)
    group = f"{topic}-readers"
    transactions = [transaction._replace(group=group if transaction.group else None) for transaction in WRITTEN]
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


# Consume, transform, produce


@pytest.mark.parametrize(
    ("client", "settings"),
    [("2.8.2", ()), ("3.9.2", ()), ("4.3.1", ()), ("4.3.1", ("group.protocol=consumer",))],
)
def test_a_copy_is_exact_though_every_third_transaction_aborts(
    broker: Broker, tmp_path: Path, client: str, settings: tuple[str, ...]
) -> None:
    copying.create_topics(broker.bootstrap)
    copying.fill(broker.bootstrap, 1_500)
    copier = copying.Copier(broker.bootstrap, "copier", "copiers", client, tmp_path / "copier.log", *settings)
    values = copying.read(broker.bootstrap, COMMITTED, 1_500)
    copier.kill9()
    assert values == {index: list(range(index, 1_500, 3)) for index in range(3)}
    assert copying.repeated(copying.read(broker.bootstrap, UNCOMMITTED, 1_500))


@pytest.mark.timeout(600)
def test_a_copy_is_exact_though_everyone_is_killed(broker: Broker, tmp_path: Path) -> None:
    chance = random.Random(7)
    count = 0
    copying.create_topics(broker.bootstrap)
    copiers = [
        copying.Copier(broker.bootstrap, f"copier-{index}", "copiers", "4.3.1", tmp_path / f"copier-{index}.log")
        for index in range(2)
    ]
    for _ in range(KILLS):
        copying.fill(broker.bootstrap, 300, count)
        count += 300
        time.sleep(chance.uniform(0.5, 3))  # the time between kills, by the seed
        chance.choice([broker.kill9, *(copier.restart for copier in copiers)])()
        broker.restart()
    values = copying.read(broker.bootstrap, COMMITTED, count)
    for copier in copiers:
        copier.kill9()
    assert not copying.repeated(values)
    assert {index: sorted(numbers) for index, numbers in values.items()} == {
        index: list(range(index, count, 3)) for index in range(3)
    }


@pytest.mark.timeout(600)
def test_no_anomaly_though_broker_and_producers_are_killed(broker: Broker) -> None:
    chance, history = random.Random(5), History()
    Confluent().create(broker.bootstrap, histories.TOPIC, partitions=histories.PARTITIONS)
    readers = [
        histories.HistoryReader(broker.bootstrap, history, committed=transaction) for transaction in (True, False)
    ]
    writers = [histories.TransactionalWriter(broker.bootstrap, history, f"w{seed}", seed) for seed in range(3)]
    for thread in (*readers, *writers):
        thread.start()
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.3, 2))  # the time between kills, by the seed
        broker.kill9()
        broker.start()
    for writer in writers:
        writer.finish()
    history.final = histories.read_to_the_end(broker.bootstrap)
    time.sleep(copying.SETTLE_S)  # a record that readers must not get would come within this time
    for reader in readers:
        reader.finish()
    assert not [fault for reader in readers for fault in reader.faults]
    assert not [fault for writer in writers for fault in writer.faults]
    assert history.anomalies() == []
    committed = sum(transaction.outcome is Outcome.COMMITTED for transaction in history.transactions)
    assert committed > KILLS
