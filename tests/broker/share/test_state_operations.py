"""Tests operations on share group state in requests between brokers: the other broker performs and answers the
operation that was sent."""

from __future__ import annotations

from typing import Any

import pytest

from broker.share.state_operations import (
    MESSAGES,
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    WriteState,
)
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareState
from coordinator.share.shard import StateWrite, Summary

KEY = ShareKey("g", b"a-topic's-id----", 3)
BATCHES = (StateBatch(5, 7, 0, 1), StateBatch(8, 8, 2, 3))
ANSWERS: list[tuple[Any, object]] = [
    (InitializeState(KEY, 2, 5), None),
    (ReadState(KEY, 4), ShareState(0, 2, 4, 5, -1, 0, 0, BATCHES)),
    (WriteState(KEY, StateWrite(2, 4, 5, 1, [*BATCHES])), None),
    (ReadSummary(KEY), Summary(2, 4, 5, 1)),
    (DeleteState(KEY), None),
]
"""Returns an operation of each kind, with its answer."""


@pytest.mark.parametrize(("operation", "answer"), ANSWERS, ids=lambda value: type(value).__name__)
def test_an_operation_and_its_answer_arrive_as_they_were_sent(operation: Any, answer: object) -> None:
    arrived = type(operation).of(KEY, operation.data())
    assert arrived == operation
    result = MESSAGES[type(operation)].result(partition=KEY.partition)
    arrived.fill(result, answer)
    assert operation.answer(result) == answer


def test_each_operation_has_messages() -> None:
    assert {type(operation) for operation, _ in ANSWERS} == MESSAGES.keys()
