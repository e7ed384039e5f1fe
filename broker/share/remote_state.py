"""Sends operations on share group state to other brokers; a request has all operations of one kind, broker and group.

Source: PersisterStateManager, whose requests also have one group each (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, TypeVar, cast

from broker.shards.batcher import Batcher
from broker.shards.neighbours import Neighbours
from broker.share.state_operations import MESSAGES, StateOperation, StateResponse, StateResult
from coordinator.engine.errors import Rejection
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.types import Uuid

A = TypeVar("A")


class StateDestination(NamedTuple):
    """The broker, the operation and the group of a request."""

    broker_id: int
    kind: type
    group_id: str


class RemoteState:
    """Operations on share group state whose coordinators are on other brokers."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._batcher: Batcher[StateDestination, StateOperation[object], object] = Batcher("share state", self._send)

    async def perform(self, broker_id: int, operation: StateOperation[A]) -> A:
        """Returns the broker's answer. Raises the KafkaError in the answer, or the errors of `Batcher.submit`."""
        destination = StateDestination(broker_id, type(operation), operation.key.group_id)
        untyped = cast(StateOperation[object], operation)  # the answer to an operation has the operation's type
        answer = await self._submitted(destination, untyped)
        if isinstance(answer, KafkaError):
            raise answer
        return cast(A, answer)

    def stop(self) -> None:
        """Sends no more requests."""
        self._batcher.stop()
        self._neighbours.stop()

    def _submitted(self, destination: StateDestination, operation: StateOperation[object]) -> asyncio.Future[object]:
        return self._batcher.submit(destination, operation.key, operation)

    async def _send(self, destination: StateDestination, batch: Sequence[StateOperation[object]]) -> list[object]:
        broker_id, kind, group_id = destination
        messages = MESSAGES[kind]
        topics: dict[Uuid, list[object]] = {}
        for operation in batch:
            topics.setdefault(operation.key.topic_id, []).append(operation.data())
        request = messages.request(
            group_id=group_id,
            topics=[
                messages.topic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()
            ],
        )
        results = by_key(group_id, await self._neighbours.send(broker_id, request, messages.response))
        return [answer_of(operation, results.get(operation.key)) for operation in batch]


def by_key(group_id: str, response: StateResponse) -> dict[ShareKey, StateResult]:
    """Returns the results of a response by share partition."""
    return {
        ShareKey(group_id, topic.topic_id, result.partition): result
        for topic in response.results
        for result in topic.partitions
    }


def answer_of(operation: StateOperation[object], result: StateResult | None) -> object:
    """Returns the operation's answer, or its KafkaError; UNKNOWN_SERVER_ERROR if the response leaves it out."""
    if result is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The share coordinator's response has no such partition.")
    if result.error_code:
        code = error_code(result.error_code)
        kind = Rejection if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else KafkaError  # the share partition's topic
        return kind(code, result.error_message or None)
    return operation.answer(result)
