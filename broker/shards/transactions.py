"""The transaction coordinator of this broker: shards of transactional ids on the partitions of `__transaction_state`.

A task beside each shard writes its markers. A partition leader's query about a transactional id goes to the broker that
coordinates the id. Source: Kafka's TransactionCoordinator and AddPartitionsToTxnManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from broker.config import BrokerConfig
from broker.replica.partition import Partition
from broker.shards.environment import Environment
from broker.shards.hosting import Coordinator, InternalTopic, ShardParts, min_insync_replicas
from broker.shards.markers import MarkerWriter
from coordinator.cluster.producer_ids import ProducerIdPool
from coordinator.engine.result import Ticket
from coordinator.transaction.settings import TransactionSettings
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.shards import marker_task
    from coordinator.transaction import records, shard
    from coordinator.transaction.records import Batch, TransactionRecord
    from coordinator.transaction.shard import TransactionResult, TransactionShard
    from coordinator.transaction.transaction import Producer, Transaction
else:  # with the first shard
    marker_task = lazy("broker.shards.marker_task")
    records = lazy("coordinator.transaction.records")
    shard = lazy("coordinator.transaction.shard")

A = TypeVar("A")
Decide: TypeAlias = "Callable[[TransactionShard, Ticket[A], int], TransactionResult]"
"""A decision on a transactional id: (shard, ticket, now_ms) → Result."""

FEATURE = "transaction.version"


def topic_of(environment: Environment) -> InternalTopic:
    """Returns Kafka's options of the topic (TransactionStateManager.transactionTopicConfigs)."""
    return InternalTopic(
        "__transaction_state",
        lambda config: config.transaction_state_log_num_partitions,
        lambda config: config.transaction_state_log_replication_factor,
        lambda config: topic_configs(config, len(environment.image.brokers)),
    )


def topic_configs(config: BrokerConfig, brokers: int) -> Mapping[str, str]:
    """Returns Kafka's configs of the topic."""
    return {
        "unclean.leader.election.enable": "false",
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": min_insync_replicas(config, config.transaction_state_log_min_isr, brokers),
        "segment.bytes": str(config.transaction_state_log_segment_bytes),
    }


class TransactionCoordinator(Coordinator["TransactionShard", "TransactionRecord"]):
    """The coordinator that handlers call, by transactional id."""

    def __init__(self, environment: Environment, producer_ids: ProducerIdPool, marker_writer: MarkerWriter) -> None:
        super().__init__(environment, topic_of(environment), self._make, None, self._write_timeout_ms)
        self._producer_ids = producer_ids
        self._marker_writer = marker_writer
        self._settings: tuple[BrokerConfig, TransactionSettings] | None = None

    def _write_timeout_ms(self, records: Sequence[TransactionRecord]) -> int:
        """Returns the time that a producer waits for its coordinator's log: its transaction timeout."""
        timeouts = [record.transaction.timeout_ms for record in records if record.transaction is not None]
        return max(timeouts, default=self.environment.config.transaction_max_timeout_ms)

    def submit(self, transactional_id: str, decide: Decide[A]) -> asyncio.Future[A]:
        """Decides a request in the id's shard. Returns the answer's future, which is done if it needn't wait. Raises
        KafkaError as clients see it."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        return self.submit_at(self.partition_of(transactional_id), decide)

    async def init_producer_id(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Producer:
        """Decides InitProducerId of a transactional producer. Raises KafkaError."""
        await self._producer_ids.stock()
        return await self.submit(
            transactional_id,
            lambda shard, ticket, now_ms: shard.init_producer_id(
                transactional_id, timeout_ms, expected, ticket, now_ms
            ),
        )

    def add_partitions(
        self, transactional_id: str, producer: Producer, names: Collection[TopicPartition], client_version: int
    ) -> asyncio.Future[None]:
        """Adds partitions to a transaction: AddPartitionsToTxn, AddOffsetsToTxn, the first write. Raises KafkaError."""
        return self.submit(
            transactional_id,
            lambda shard, ticket, now_ms: shard.add_partitions(
                transactional_id, producer, names, client_version, ticket, now_ms
            ),
        )

    def verify_partitions(
        self, transactional_id: str, producer: Producer, names: Collection[TopicPartition]
    ) -> asyncio.Future[frozenset[TopicPartition]]:
        """Returns the partitions that are part of the producer's transaction. Raises KafkaError."""
        return self.submit(
            transactional_id,
            lambda shard, ticket, _: shard.verify_partitions(transactional_id, producer, names, ticket),
        )

    async def end(self, transactional_id: str, producer: Producer, *, committed: bool, client_version: int) -> Producer:
        """Decides EndTxn. Raises KafkaError."""
        await self._producer_ids.stock()
        return await self.submit(
            transactional_id,
            lambda shard, ticket, now_ms: shard.end(
                transactional_id, producer, committed, client_version, ticket, now_ms
            ),
        )

    def find(self, transactional_id: str) -> Transaction:
        """Returns the id's transaction. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
        TRANSACTIONAL_ID_NOT_FOUND."""
        index = self.partition_of(transactional_id)
        shard = self.shards.get(index)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not self.is_active(index):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return transaction

    def all(self) -> Iterator[Transaction]:
        """Yields every transactional id's transaction. Raises COORDINATOR_LOAD_IN_PROGRESS until all shards are
        loaded."""
        if not all(map(self.is_active, self.shards)):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        for shard in self.shards.values():
            yield from shard.transactions.values()

    # Shards

    def _make(self, partition: Partition) -> ShardParts[TransactionShard, TransactionRecord, Batch]:
        transactions = shard.TransactionShard(
            shard.TransactionEnvironment(self.settings, self.transaction_version, self._new_producer_id)
        )
        serde = records.TransactionSerde(self.transaction_version)
        return ShardParts(
            transactions, serde, records.joined, lambda _: self._spawn(self._write_markers(partition, transactions))
        )

    def settings(self) -> TransactionSettings:
        """Returns the broker's options for transactions; a new object only when they change."""
        config = self.environment.config
        if self._settings is None or self._settings[0] is not config:
            values = {name: getattr(config, name) for name in TransactionSettings._fields}
            self._settings = config, TransactionSettings(**values)
        return self._settings[1]

    def transaction_version(self) -> int:
        """Returns the finalized feature level: from 2 on, every transaction ends with a new epoch (KIP-890)."""
        return self.environment.image.features.get(FEATURE, 0)

    def _new_producer_id(self) -> int:
        producer_ids = self._producer_ids
        try:
            return producer_ids.take()
        except KafkaError:
            self._spawn(producer_ids.stock())
            raise

    # Markers

    async def _write_markers(self, partition: Partition, shard: TransactionShard) -> None:
        """Writes the markers of a shard's transactions as they are decided, until the shard is unloaded."""
        index = partition.name.partition
        seat = marker_task.ShardSeat(
            partition.leader_epoch, partial(self.submit_at, index), lambda: self.shards.get(index) is shard
        )
        await marker_task.MarkerTask(seat, self.environment, self._marker_writer).run()
