"""The five requests of share group state: answered by the shards on this broker, or sent to other brokers with the
operations of one kind and group.

Source: ShareCoordinatorService, PersisterStateManager (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache, partial
from typing import TypeVar, cast

from broker.request.turns import Turns
from broker.shards.anywhere import Packing
from broker.shards.shares import ShareCoordinator
from broker.shards.translations import seen_by_client
from broker.share.state_operations import (
    MESSAGES,
    InitializeState,
    StateMessages,
    StateOperation,
    StateRequest,
    StateResponse,
    StateResult,
)
from client.futures import retrieve
from coordinator.engine.errors import Rejection
from coordinator.share.key import ShareKey
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.types import Uuid

A = TypeVar("A")

# Requests of other brokers, and of tools.


async def answered(
    kind: type[StateOperation[A]], request: StateRequest, turns: Turns, coordinator: ShareCoordinator
) -> StateResponse:
    """Returns the response. Each partition is processed and answered separately, and all wait for their commits
    together; a partition that is named twice is
    processed twice, and gets the last result. A group without a name has no results, and neither has any request but
    InitializeShareGroupState if one of its topics has no partitions.
    """
    messages = MESSAGES[kind]
    is_whole = kind is InitializeState or all(topic.partitions for topic in request.topics)
    results: dict[Uuid, dict[int, StateResult]] = {}
    begun: list[tuple[StateOperation[A], StateResult, asyncio.Future[A]]] = []
    for topic in request.topics if request.group_id and is_whole else ():
        for data in topic.partitions:
            await turns.next()
            result = messages.result(partition=data.partition, error_code=ErrorCode.NONE)
            results.setdefault(topic.topic_id, {})[data.partition] = result
            try:
                operation = kind.of(ShareKey(request.group_id, topic.topic_id, data.partition), data)
                answer = coordinator.submit(operation.key, operation.decide)
            except KafkaError as error:
                fail(result, error)
            else:
                answer.add_done_callback(retrieve)  # the request may be gone
                begun.append((operation, result, answer))
    for operation, result, answer in begun:
        await turns.next()
        try:
            operation.fill(result, await answer)
        except KafkaError as error:
            fail(result, error)
    return messages.response(
        results=[
            messages.topic_result(topic_id=topic_id, partitions=list(by_partition.values()))
            for topic_id, by_partition in results.items()
        ]
    )


def fail(result: StateResult, error: KafkaError) -> None:
    """Makes a result the rejection of its partition."""
    client_error = seen_by_client(error)
    result.error_code, result.error_message = client_error.code, client_error.message


# Requests to other brokers.


def packing_of(operation: StateOperation[A]) -> Packing[StateOperation[A], StateResponse, A]:
    """Returns the packing of an operation's kind."""
    return cast("Packing[StateOperation[A], StateResponse, A]", packing(type(operation)))


@cache
def packing(kind: type) -> Packing[StateOperation[object], StateResponse, object]:
    messages = MESSAGES[kind]
    response = cast("type[StateResponse]", messages.response)
    return Packing("share-state", partial(packed, messages), response, unpacked, key_of, group_of)


def key_of(operation: StateOperation[object]) -> ShareKey:
    return operation.key


def group_of(operation: StateOperation[object]) -> str:
    return operation.key.group_id


def packed(messages: StateMessages, batch: Sequence[StateOperation[object]]) -> object:
    """Returns the request with these operations, which have one group."""
    topics: dict[Uuid, list[object]] = {}
    for operation in batch:
        topics.setdefault(operation.key.topic_id, []).append(operation.data())
    return messages.request(
        group_id=group_of(batch[0]),
        topics=[messages.topic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()],
    )


def unpacked(batch: Sequence[StateOperation[object]], response: StateResponse) -> list[object]:
    """Returns the operations' answers, or their errors."""
    group_id = group_of(batch[0])
    results = {
        ShareKey(group_id, topic.topic_id, result.partition): result
        for topic in response.results
        for result in topic.partitions
    }
    return [answer_of(operation, results.get(operation.key)) for operation in batch]


def answer_of(operation: StateOperation[object], result: StateResult | None) -> object:
    """Returns the operation's answer, or its KafkaError; UNKNOWN_SERVER_ERROR if the response leaves it out."""
    if result is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The share coordinator's response has no such partition.")
    if result.error_code:
        code = error_code(result.error_code)
        kind = Rejection if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else KafkaError  # the share partition's topic
        return kind(code, result.error_message or None)
    return operation.answer(result)
