"""The producer's part of transactions: its producer id, and one transaction from begin to end (KIP-98).

Partitions are added before records are sent to them, which every broker since 0.11 supports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from commands.client.cluster_client import COORDINATOR_MOVED, ClusterClient, CoordinatorKind
from commands.errors import raise_if
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.types import TopicPartition

R = TypeVar("R")

RETRIED: Final = COORDINATOR_MOVED | {ErrorCode.CONCURRENT_TRANSACTIONS}
"""Errors after which a request is sent again: an earlier transaction of the same id may still be ending."""

ADD_VERSION: Final = 3
END_VERSION: Final = 4
"""The last versions for clients that add partitions themselves (with KIP-890 brokers add them)."""


class ProducerIdentity(NamedTuple):
    """The producer id and epoch of a producer."""

    producer_id: int
    epoch: int


NO_TIMEOUT_MS: Final = 0x7FFFFFFF
"""The transaction timeout of a producer without transactions."""

NO_PRODUCER: Final = ProducerIdentity(-1, -1)


async def idempotent_identity(cluster: ClusterClient) -> ProducerIdentity:
    """Returns a new producer's identity."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS)

    async def ask() -> tuple[int, InitProducerIdResponse]:
        answer = await cluster.any(request, InitProducerIdResponse)
        return answer.error_code, answer

    answer = await cluster.until_settled(ask, COORDINATOR_MOVED)
    raise_if("a producer id (--no-idempotence needs none)", answer.error_code)
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


class ProducerTransaction:
    """One transaction of a transactional id."""

    def __init__(self, cluster: ClusterClient, transactional_id: str) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._identity = NO_PRODUCER
        self._partitions: set[TopicPartition] = set()

    async def begin(self, timeout_ms: int) -> ProducerIdentity:
        """Fences earlier producers of this transactional id, aborts their open transaction, and returns the new
        identity."""
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=timeout_ms)
        answer = await self._ask(request, InitProducerIdResponse, lambda answer: answer.error_code)
        raise_if(f"transactional id {self._id}", answer.error_code)
        self._identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        return self._identity

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Adds partitions to the transaction, before records are sent to them."""
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(set(partitions) - self._partitions):
            topics.setdefault(topic, []).append(index)
        if not topics:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._identity.producer_id,
            v3_and_below_producer_epoch=self._identity.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=all_) for name, all_ in topics.items()],
        )
        answer = await self._ask(request, AddPartitionsToTxnResponse, _worst, ADD_VERSION)
        for topic_result in answer.results_by_topic_v3_and_below:
            for partition_result in topic_result.results_by_partition:
                raise_if(
                    f"{topic_result.name}-{partition_result.partition_index}", partition_result.partition_error_code
                )
                self._partitions.add(TopicPartition(topic_result.name, partition_result.partition_index))

    async def end(self, *, commit: bool) -> None:
        """Commits or aborts the transaction; does nothing if it has no partitions."""
        if not self._partitions:
            return
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            committed=commit,
        )
        answer = await self._ask(request, EndTxnResponse, lambda answer: answer.error_code, END_VERSION)
        raise_if(f"the end of the transaction {self._id}", answer.error_code)
        self._partitions.clear()

    async def _ask(self, request: object, response: type[R], code: Callable[[R], int], max_version: int = 0x7FFF) -> R:
        return await self._cluster.coordinated(
            CoordinatorKind.TRANSACTION,
            self._id,
            request,
            response,
            code=code,
            max_version=max_version,
            retriable=RETRIED,
        )


def _worst(answer: AddPartitionsToTxnResponse) -> int:
    codes = [
        partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
    return next((code for code in codes if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED), 0)
