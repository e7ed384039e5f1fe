"""Tests that kafka_exporter's metrics have the values of its rules, which librdkafka's requests give here.

Source of the rules: kafka_exporter.go. It lists topics, requests their first and last offsets, lists groups, and
requests the offsets of all partitions of each group; a topic without offsets of a group is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import Odradek
from tests.interop.local import SOON_S
from tests.interop.processes import free_port
from tests.interop.prometheus import page, values

pytestmark = [pytest.mark.metrics, pytest.mark.odradek_only]

NO_OFFSET = -1
PREFIXES = ("kafka_brokers", "kafka_broker_", "kafka_topic_", "kafka_consumergroup_")

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[Odradek, str]]:
    address = f"127.0.0.1:{free_port()}"
    broker = Odradek(tmp_path / "data", {"odradek.metrics.listener": address})
    broker.start()
    yield broker, address
    broker.stop()
    broker.forget()


def fill(bootstrap: str) -> Consumer:
    """Creates topics, a group that has read a part of one and left, and a group with a member, which is returned."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("orders", 3, 1), NewTopic("empty", 2, 1)]).values():
        created.result(SOON_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(300):
        producer.produce("orders", b"%d" % number, partition=number % 2)  # and nothing to the third partition
    assert producer.flush(SOON_S) == 0
    members = []
    for group in ("left", "stays"):
        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        consumer.subscribe(["orders"])
        messages = consumer.consume(50, timeout=SOON_S)
        assert messages
        consumer.commit(message=messages[-1], asynchronous=False)
        members.append(consumer)
    members[0].close()
    return members[1]


class Rules:
    """kafka_exporter's rules, over the results of librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
        self._cluster = self._admin.list_topics(timeout=SOON_S)
        self.values: Values = {}

    def _put(self, name: str, value: float, **labels: object) -> None:
        self.values[f"kafka_{name}", frozenset((key, str(text)) for key, text in labels.items())] = value

    def brokers(self) -> None:
        self._put("brokers", len(self._cluster.brokers))
        for one in self._cluster.brokers.values():
            self._put("broker_info", 1, id=one.id, address=f"{one.host}:{one.port}")

    def topics(self) -> None:
        for topic in self._cluster.topics.values():
            self._put("topic_partitions", len(topic.partitions), topic=topic.topic)
            for partition in topic.partitions.values():
                own = {"topic": topic.topic, "partition": partition.id}
                low, high = self._reader.get_watermark_offsets(
                    TopicPartition(topic.topic or "", partition.id), timeout=SOON_S
                )
                self._put("topic_partition_leader", partition.leader, **own)
                self._put("topic_partition_current_offset", high, **own)
                self._put("topic_partition_oldest_offset", low, **own)
                self._put("topic_partition_replicas", len(partition.replicas), **own)
                self._put("topic_partition_in_sync_replica", len(partition.isrs), **own)
                preferred = partition.leader == partition.replicas[0]
                self._put("topic_partition_leader_is_preferred", preferred, **own)
                under = len(partition.isrs) < len(partition.replicas)
                self._put("topic_partition_under_replicated_partition", under, **own)

    def group(self, name: str) -> None:
        described = self._admin.describe_consumer_groups([name])[name].result(SOON_S)
        self._put("consumergroup_members", len(described.members), consumergroup=name)
        for topic in self._cluster.topics.values():
            partitions = [TopicPartition(topic.topic or "", index) for index in topic.partitions]
            request = ConsumerGroupTopicPartitions(name, partitions)
            answer = self._admin.list_consumer_group_offsets([request])[name].result(SOON_S)
            offsets = {one.partition: max(one.offset, NO_OFFSET) for one in answer.topic_partitions}
            if set(offsets.values()) != {NO_OFFSET}:
                self._group_topic(name, topic.topic or "", offsets)

    def _group_topic(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        lag_sum = 0
        for partition, offset in offsets.items():
            _, high = self._reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=SOON_S)
            lag = NO_OFFSET if offset == NO_OFFSET else high - offset
            lag_sum += max(lag, 0)
            own = {"consumergroup": group, "topic": topic, "partition": partition}
            self._put("consumergroup_current_offset", offset, **own)
            self._put("consumergroup_lag", lag, **own)
        self._put("consumergroup_current_offset_sum", sum(offsets.values()), consumergroup=group, topic=topic)
        self._put("consumergroup_lag_sum", lag_sum, consumergroup=group, topic=topic)


def reported(address: str) -> Values:
    return {key: value for key, value in values(page(address)).items() if key[0].startswith(PREFIXES)}


def test_the_names_of_kafka_exporter_have_its_values(broker: tuple[Odradek, str]) -> None:
    odradek, address = broker
    member = fill(odradek.bootstrap)
    rules = Rules(odradek.bootstrap)
    rules.brokers()
    rules.topics()
    for group in ("left", "stays"):
        rules.group(group)
    deadline = time.monotonic() + SOON_S
    while (page_values := reported(address)) != rules.values:
        assert time.monotonic() < deadline, page_values.items() ^ rules.values.items()
        time.sleep(1)  # a page is served again for a second
    lags = {value for (name, _), value in rules.values.items() if name == "kafka_consumergroup_lag"}
    assert NO_OFFSET in lags, "a partition without an offset"
    assert max(lags) > 0
    assert len({name for name, _ in rules.values}) == 15
    member.close()
