"""The values of a confluent_kafka message that was delivered or acknowledged; its types allow None for each."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message


def partition_of(message: Message) -> int:
    partition = message.partition()
    assert partition is not None
    return partition


def offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def value_of(message: Message) -> bytes:
    value = message.value()
    assert value is not None
    return bytes(value)


def error_of(message: Message) -> KafkaError:
    """Returns the error of a message that has one."""
    error = message.error()
    assert error is not None
    return error
