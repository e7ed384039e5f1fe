"""The transaction coordinator of this broker: shards of transactional ids on the partitions of `__transaction_state`.

Each shard has a task beside it that writes its markers: into the partitions of this broker straight away. Source:
Kafka's TransactionCoordinator and TransactionMarkerChannelManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from broker.config import BrokerConfig
from broker.coordinators.environment import Environment
from broker.coordinators.hosting import Coordinator, InternalTopic, ShardParts
from broker.coordinators.markers import MarkerWriter, marker_of
from broker.logging import get_logger
from broker.replica.partition import Partition
from coordinator.cluster.producer_ids import ProducerIdPool
from coordinator.outcome import Ticket
from coordinator.transaction.settings import RETRY_MS, TransactionSettings
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

if TYPE_CHECKING:  # a shard's decisions and records are imported with the first shard: a start needs none
    from coordinator.transaction.markers import Markers
    from coordinator.transaction.records import Batch, TransactionRecord
    from coordinator.transaction.shard import TransactionOutcome, TransactionShard
    from coordinator.transaction.transaction import Producer, Transaction

A = TypeVar("A")
Decide: TypeAlias = "Callable[[TransactionShard, Ticket[A], int], TransactionOutcome]"
"""A decision on a transactional id: (shard, ticket, now_ms) → Outcome."""

FEATURE = "transaction.version"

Waiting: TypeAlias = "list[tuple[TopicPartition, Coroutine[Any, Any, None]]]"
"""Partitions with a marker that is not committed, and the coroutines that wait for it."""

log = get_logger("broker.transactions")


def topic_of(environment: Environment) -> InternalTopic:
    """Returns Kafka's options of the topic (TransactionStateManager.transactionTopicConfigs)."""
    return InternalTopic(
        "__transaction_state",
        lambda config: config.transaction_state_log_num_partitions,
        lambda config: config.transaction_state_log_replication_factor,
        lambda config: topic_configs(config, len(environment.image.brokers)),
    )


def topic_configs(config: BrokerConfig, brokers: int) -> Mapping[str, str]:
    """Returns Kafka's configs of the topic. Where the replication factor is lowered to the number of brokers, so is
    min.insync.replicas."""
    is_lowered = config.odradek_profile == "dev"
    min_isr = config.transaction_state_log_min_isr
    return {
        "unclean.leader.election.enable": "false",
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": str(max(1, min(min_isr, brokers)) if is_lowered else min_isr),
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
        """Returns how long a producer waits for its coordinator's log: as long as its transactions may take."""
        timeouts = [record.transaction.timeout_ms for record in records if record.transaction is not None]
        return max(timeouts, default=self.environment.config.transaction_max_timeout_ms)

    def begin_on(self, transactional_id: str, decide: Decide[A]) -> asyncio.Future[A]:
        """Has the id's shard decide, and returns the answer's future, which may be done. Raises KafkaError."""
        index = self.partition_of(transactional_id)
        shard = self.shards.get(index)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self.begin(index, lambda ticket, now_ms: decide(shard, ticket, now_ms))

    async def init_producer_id(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Producer:
        """InitProducerId of a transactional producer. Raises KafkaError."""
        await self._producer_ids.stock()
        return await self.begin_on(
            transactional_id,
            lambda shard, ticket, now_ms: shard.init_producer_id(
                transactional_id, timeout_ms, expected, ticket, now_ms
            ),
        )

    def add_partitions(
        self, transactional_id: str, producer: Producer, names: Collection[TopicPartition], client_version: int
    ) -> asyncio.Future[None]:
        """Adds partitions to a transaction: AddPartitionsToTxn, AddOffsetsToTxn, the first write. Raises KafkaError."""
        return self.begin_on(
            transactional_id,
            lambda shard, ticket, now_ms: shard.add_partitions(
                transactional_id, producer, names, client_version, ticket, now_ms
            ),
        )

    def verify_partitions(
        self, transactional_id: str, producer: Producer, names: Collection[TopicPartition]
    ) -> asyncio.Future[frozenset[TopicPartition]]:
        """Returns those of the partitions that are part of the producer's transaction. Raises KafkaError."""
        return self.begin_on(
            transactional_id,
            lambda shard, ticket, _: shard.verify_partitions(transactional_id, producer, names, ticket),
        )

    async def end(self, transactional_id: str, producer: Producer, *, committed: bool, client_version: int) -> Producer:
        """EndTxn. Raises KafkaError."""
        await self._producer_ids.stock()
        return await self.begin_on(
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
        from coordinator.transaction.records import TransactionSerde, joined
        from coordinator.transaction.shard import TransactionEnvironment, TransactionShard

        shard = TransactionShard(TransactionEnvironment(self.settings, self.transaction_version, self._new_producer_id))
        serde = TransactionSerde(self.transaction_version)
        return ShardParts(shard, serde, joined, lambda _: self._spawn(self._write_markers(partition, shard)))

    def settings(self) -> TransactionSettings:
        """Returns the broker's options that concern transactions, made anew when they change."""
        config = self.environment.config
        if self._settings is None or self._settings[0] is not config:
            values = {name: getattr(config, name) for name in TransactionSettings._fields}
            self._settings = config, TransactionSettings(**values)
        return self._settings[1]

    def transaction_version(self) -> int:
        """Returns the finalized feature: 2 where every transaction ends with a new epoch (KIP-890)."""
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
        """Writes the markers of a shard's transactions as they are decided, until the shard is given up."""
        index = partition.name.partition
        done: dict[str, list[TopicPartition]] = {}
        under_way: set[str] = set()
        while self.shards.get(index) is shard:
            try:
                work = await self.ask(index, partial(shard.write_on, done, under_way))
            except KafkaError as error:
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return
                await asyncio.sleep(RETRY_MS / 1000)
                continue
            done = {}
            for markers in work:
                written: list[TopicPartition] = []
                waiting: Waiting = []
                try:
                    written, waiting = self._begin(markers, partition.leader_epoch)
                except Exception:  # the partitions come round again
                    log.exception("markers not written", transactional_id=markers.transactional_id)
                if waiting:
                    under_way.add(markers.transactional_id)
                    self._spawn(self._report(index, shard, markers.transactional_id, written, waiting, under_way))
                else:
                    done[markers.transactional_id] = written

    def _begin(self, markers: Markers, coordinator_epoch: int) -> tuple[list[TopicPartition], Waiting]:
        """Appends a transaction's markers to its partitions, and returns those that have it now, or do not need one any
        more, and those that have to wait for it."""
        from coordinator.group.records import EndTransaction

        record = EndTransaction(markers.producer_id, markers.epoch, markers.committed, coordinator_epoch)
        marker = marker_of(record, markers.transaction_version, self.environment.clock.now_ms())
        written: list[TopicPartition] = []
        waiting: Waiting = []
        for name in markers.partitions:
            try:
                wait = self._marker_writer.begin(name, marker)
            except KafkaError as error:
                self._failed_marker(markers.transactional_id, name, error, written)
                continue
            if wait is None:
                written.append(name)
            else:
                waiting.append((name, wait))
        return written, waiting

    async def _report(
        self,
        index: int,
        shard: TransactionShard,
        transactional_id: str,
        written: list[TopicPartition],
        waiting: Waiting,
        under_way: set[str],
    ) -> None:
        """Reports markers to the shard once they are committed; meanwhile other transactions go on."""
        results = await asyncio.gather(*(wait for _, wait in waiting), return_exceptions=True)
        for (name, _), result in zip(waiting, results, strict=True):
            if result is None:
                written.append(name)
            elif isinstance(result, KafkaError):
                self._failed_marker(transactional_id, name, result, written)
            elif isinstance(result, Exception):  # the partition comes round again
                log.error("markers not written", transactional_id=transactional_id, exc_info=result)
            else:
                raise result

        def decide(ticket: Ticket[None], now_ms: int) -> TransactionOutcome:
            under_way.discard(transactional_id)
            return shard.markers_written({transactional_id: written}, ticket, now_ms)

        while self.shards.get(index) is shard:
            try:
                await self.ask(index, decide)
            except KafkaError as error:
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return
                await asyncio.sleep(RETRY_MS / 1000)
            else:
                return

    def _failed_marker(
        self, transactional_id: str, name: TopicPartition, error: KafkaError, written: list[TopicPartition]
    ) -> None:
        if self._is_over(name, error):
            written.append(name)
        else:
            log.warning("marker not written", transactional_id=transactional_id, partition=str(name), reason=str(error))

    def _is_over(self, name: TopicPartition, error: KafkaError) -> bool:
        """True when the transaction is over in the partition without the marker: it was deleted, or a newer epoch of
        the producer has ended it there already, as when an administrator aborts it."""
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            return True
        topic = self.environment.image.topic(name.topic)
        return topic is None or name.partition not in topic.partitions
