"""A shard under test: the records and the answer of each request, with the records applied as the engine does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from coordinator.engine.result import Decision, Result
from coordinator.transaction.markers import Markers
from coordinator.transaction.records import TransactionRecord, TransactionSerde, joined
from coordinator.transaction.settings import TransactionSettings
from coordinator.transaction.shard import TransactionEnvironment, TransactionShard
from coordinator.transaction.state import State
from coordinator.transaction.transaction import Producer, Transaction
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.coordinator.driver import START_MS, Asked, Driver

ID = "transfers"
TIMEOUT_MS = 60_000
FIRST_PRODUCER_ID = 7_000

A, B, OFFSETS = TopicPartition("a", 0), TopicPartition("b", 3), TopicPartition("__consumer_offsets", 17)


PRODUCER = Producer(5, 3)


class Taken(NamedTuple):
    """The result of a request: the written records, and its answer; None while it waits."""

    records: list[Transaction | None]
    answer: object


class Given(Driver[TransactionShard, TransactionRecord]):
    """A shard, and producer ids 7000, 7001 …"""

    def __init__(self, version: int = 2, settings: TransactionSettings | None = None) -> None:
        self.version = version
        self.settings = settings or TransactionSettings()
        self.ids_at_hand = True
        self.under_way: set[str] = set()
        """Transactions whose markers the writer waits for."""
        self._serde = TransactionSerde(lambda: self.version)
        self._writer: Asked[list[Markers], TransactionRecord] | None = None
        super().__init__(self._shard(), self._through_log)
        self.drawn = FIRST_PRODUCER_ID
        self.is_doubling = True

    @property
    def shard(self) -> TransactionShard:
        return self.machine

    def _shard(self) -> TransactionShard:
        return TransactionShard(
            TransactionEnvironment(lambda: self.settings, lambda: self.version, self._new_producer_id)
        )

    def _new_producer_id(self) -> int:
        if not self.ids_at_hand:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the next block is on its way")
        self.drawn += 1
        return self.drawn - 1

    def _through_log(self, records: Sequence[TransactionRecord], now_ms: int) -> list[TransactionRecord]:
        return list(self._serde.decode(joined(self._serde.encode(records, now_ms))))

    @property
    def transaction(self) -> Transaction:
        return self.shard.transactions[ID]

    def init(self, expected: Producer | None = None, timeout_ms: int = TIMEOUT_MS, name: str = ID) -> Taken:
        return self._ask(lambda t, now_ms: self.shard.init_producer_id(name, timeout_ms, expected, t, now_ms))

    def add(self, producer: Producer, *partitions: TopicPartition, version: int = 2, name: str = ID) -> Taken:
        return self._ask(lambda t, now_ms: self.shard.add_partitions(name, producer, partitions, version, t, now_ms))

    def verify(self, producer: Producer, *partitions: TopicPartition, name: str = ID) -> Taken:
        return self._ask(lambda t, now_ms: self.shard.verify_partitions(name, producer, partitions, t))

    def commit(self, producer: Producer, version: int = 2, name: str = ID) -> Taken:
        return self._ask(lambda t, now_ms: self.shard.end(name, producer, True, version, t, now_ms))

    def abort(self, producer: Producer, version: int = 2, name: str = ID) -> Taken:
        return self._ask(lambda t, now_ms: self.shard.end(name, producer, False, version, t, now_ms))

    def write_on(self, done: dict[str, Iterable[TopicPartition]] | None = None) -> Taken:
        """Sends the marker writer's request; `markers` returns its later answers."""
        under_way = frozenset(self.under_way)
        asked: Asked[list[Markers], TransactionRecord] = self.send(
            lambda ticket, now_ms: self.shard.write_on(done or {}, under_way, ticket, now_ms)
        )
        self._writer = asked if asked.waits else None
        return taken(asked)

    def markers_written(self, done: dict[str, Iterable[TopicPartition]]) -> Taken:
        """Reports that markers that the writer waited for are committed, or not."""
        return self._ask(lambda ticket, now_ms: self.shard.markers_written(done, ticket, now_ms))

    def markers(self) -> object:
        """Returns the markers that the writer got since the last call."""
        if self._writer is None or self._writer.waits:
            return None
        asked, self._writer = self._writer, None
        return asked.answer

    def write_markers(self, name: str = ID) -> Taken:
        """Reports all markers of the id's transaction as written."""
        return self.write_on({name: self.shard.transactions[name].partitions})

    def pass_time(self, ms: int) -> Taken:
        return Taken([record.transaction for record in self.advance(ms)], None)

    def restart(self) -> None:
        """Returns another shard, loaded from the log."""
        self.under_way, self._writer = set(), None
        shard = self._shard()
        for record in self.log:
            shard.apply(record)
        self.replace(shard)

    def put(self, transaction: Transaction) -> None:
        """Sets the state at the start of a test."""
        self.carry_out(Result([TransactionRecord(transaction.transactional_id, transaction)]))

    def _ask(self, decision: Decision[Any, TransactionRecord]) -> Taken:
        return taken(self.send(decision))


def taken(asked: Asked[Any, TransactionRecord]) -> Taken:
    answer = None if asked.waits else asked.error or asked.answer
    return Taken([record.transaction for record in asked.records], answer)


def transaction(state: State = State.ONGOING, producer: Producer = PRODUCER, **fields: object) -> Transaction:
    """Returns a transaction with these fields."""
    partitions = frozenset({A}) if state not in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT) else ()
    started_ms = -1 if state is State.EMPTY else START_MS
    return Transaction(
        ID, *producer, TIMEOUT_MS, state, START_MS, frozenset(partitions), started_ms, producer.producer_id
    )._replace(**fields)  # type: ignore[arg-type]  # the fields are Transaction's
