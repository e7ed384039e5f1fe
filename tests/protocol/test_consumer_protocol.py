"""Tests the subscriptions and assignments of consumers against kafka-python's codec."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment as TheirAssignment
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription as TheirSubscription

from protocol.consumer_protocol import (
    MAX_ITEMS,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read,
    write,
)
from protocol.errors import ProtocolError

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["a", "b"],
    user_data=b"u",
    owned_partitions=[TopicPartition(topic="a", partitions=[0, 2])],
    generation_id=4,
    rack_id="r",
)
ASSIGNMENT = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="a", partitions=[1])], user_data=None)


@pytest.mark.parametrize("version", range(4))
def test_kafka_python_writes_the_same_subscription(version: int) -> None:
    data = write(SUBSCRIPTION, version)
    assert TheirSubscription.decode(data).encode() == data
    read_back = read(ConsumerProtocolSubscription, data)
    assert read_back.topics == ["a", "b"]
    assert read_back.owned_partitions == (SUBSCRIPTION.owned_partitions if version >= 1 else [])
    assert read_back.rack_id == ("r" if version == 3 else None)


@pytest.mark.parametrize("version", range(4))
def test_kafka_python_writes_the_same_assignment(version: int) -> None:
    data = write(ASSIGNMENT, version)
    assert TheirAssignment.decode(data).encode() == data
    assert read(ConsumerProtocolAssignment, data) == ASSIGNMENT


def test_a_version_from_the_future_is_read_as_the_newest_known() -> None:
    data = b"\x00\x09" + write(SUBSCRIPTION, 3)[2:] + b"whatever comes next"
    assert read(ConsumerProtocolSubscription, data) == SUBSCRIPTION


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x00", b"\x00\x01\x7f\xff\xff\xff"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(ConsumerProtocolSubscription, data)


def test_a_subscription_of_more_topics_than_there_can_be_is_refused() -> None:
    many = ConsumerProtocolSubscription(topics=[""] * MAX_ITEMS, user_data=None)
    assert len(read(ConsumerProtocolSubscription, write(many, 0)).topics) == MAX_ITEMS
    many.topics.append("")
    with pytest.raises(ProtocolError, match="items"):
        read(ConsumerProtocolSubscription, write(many, 0))


def test_a_large_subscription_that_is_cut_short_is_refused() -> None:
    large = ConsumerProtocolSubscription(topics=["a"], user_data=bytes(MAX_ITEMS))
    assert read(ConsumerProtocolSubscription, write(large, 0)) == large
    with pytest.raises(ProtocolError):
        read(ConsumerProtocolSubscription, write(large, 1)[:-2])
