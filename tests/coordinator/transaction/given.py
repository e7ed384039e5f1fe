"""A shard under test: what each request makes it write and answer, with the records applied as the engine does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from coordinator.engine.result import Result, Ticket
from coordinator.transaction.markers import Markers
from coordinator.transaction.records import TransactionRecord, TransactionSerde, joined
from coordinator.transaction.settings import TransactionSettings
from coordinator.transaction.shard import TransactionEnvironment, TransactionShard
from coordinator.transaction.state import State
from coordinator.transaction.transaction import Producer, Transaction
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.coordinator.purity import decided

ID = "transfers"
TIMEOUT_MS = 60_000
START_MS = 1_000_000
FIRST_PRODUCER_ID = 7_000

A, B, OFFSETS = TopicPartition("a", 0), TopicPartition("b", 3), TopicPartition("__consumer_offsets", 17)


PRODUCER = Producer(5, 3)


class Taken(NamedTuple):
    """The result of a request: records that were written, and its answer; None while it waits for one."""

    records: list[Transaction | None]
    answer: object


class Given:
    """A shard, a clock that stands still, and producer ids 7000, 7001 …"""

    def __init__(self, version: int = 2, settings: TransactionSettings | None = None) -> None:
        self.version = version
        self.settings = settings or TransactionSettings()
        self.now_ms = START_MS
        self.log: list[TransactionRecord] = []
        self.ids_at_hand = True
        self._next_id = FIRST_PRODUCER_ID
        self._answers: dict[object, object] = {}
        self.under_way: set[str] = set()
        """Transactions whose markers the writer waits for."""
        self.shard = self._shard()
        self._markers: Ticket[list[Markers]] | None = None

    def _shard(self) -> TransactionShard:
        return TransactionShard(
            TransactionEnvironment(lambda: self.settings, lambda: self.version, self._new_producer_id)
        )

    def _new_producer_id(self) -> int:
        if not self.ids_at_hand:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the next block is on its way")
        self._next_id += 1
        return self._next_id - 1

    @property
    def transaction(self) -> Transaction:
        return self.shard.transactions[ID]

    def init(self, expected: Producer | None = None, timeout_ms: int = TIMEOUT_MS, name: str = ID) -> Taken:
        return self._decide(lambda t: self.shard.init_producer_id(name, timeout_ms, expected, t, self.now_ms))

    def add(self, producer: Producer, *partitions: TopicPartition, version: int = 2, name: str = ID) -> Taken:
        return self._decide(lambda t: self.shard.add_partitions(name, producer, partitions, version, t, self.now_ms))

    def verify(self, producer: Producer, *partitions: TopicPartition, name: str = ID) -> Taken:
        return self._decide(lambda t: self.shard.verify_partitions(name, producer, partitions, t))

    def commit(self, producer: Producer, version: int = 2, name: str = ID) -> Taken:
        return self._decide(lambda t: self.shard.end(name, producer, True, version, t, self.now_ms))

    def abort(self, producer: Producer, version: int = 2, name: str = ID) -> Taken:
        return self._decide(lambda t: self.shard.end(name, producer, False, version, t, self.now_ms))

    def write_on(self, done: dict[str, Iterable[TopicPartition]] | None = None) -> Taken:
        """The marker writer asks; `markers` tells what it is given later."""

        def decide(ticket: Ticket[list[Markers]]) -> Result[TransactionRecord]:
            self._markers = ticket
            return self.shard.write_on(done or {}, frozenset(self.under_way), ticket, self.now_ms)

        return self._decide(decide)

    def written(self, done: dict[str, Iterable[TopicPartition]]) -> Taken:
        """Markers that the writer had to wait for are committed, or not."""
        return self._decide(lambda ticket: self.shard.markers_written(done, ticket, self.now_ms))

    def markers(self) -> object:
        """The markers that the writer was given since it last took some."""
        return self._answers.pop(self._markers, None)

    def write_markers(self, name: str = ID) -> Taken:
        """All markers of the id's transaction are written."""
        return self.write_on({name: self.shard.transactions[name].partitions})

    def pass_time(self, ms: int) -> Taken:
        """The deadlines that come up meanwhile are met one by one, as the engine does it."""
        until_ms, records = self.now_ms + ms, list[Transaction | None]()
        while (deadline_ms := self.shard.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            records += self._carry_out(self._twice(lambda: self.shard.expire(self.now_ms)))
        self.now_ms = until_ms
        return Taken(records, None)

    def restart(self) -> None:
        """Another shard, from what is in the log."""
        serde = TransactionSerde(lambda: self.version)
        self.under_way = set()
        self.shard = self._shard()
        for record in self.log:
            for read in serde.decode(joined(serde.encode([record], self.now_ms))):
                self.shard.apply(read)

    def put(self, transaction: Transaction) -> None:
        """The state from which a test starts."""
        self._apply([TransactionRecord(transaction.transactional_id, transaction)])

    def _decide(self, decision: Callable[[Ticket[Any]], Result[TransactionRecord]]) -> Taken:
        ticket: Ticket[object] = Ticket()
        try:
            records = self._carry_out(self._twice(lambda: decision(ticket)))
        except KafkaError as error:
            return Taken([], error.code)
        return Taken(records, self._answers.pop(ticket, None))

    def _twice(self, decide: Callable[[], Result[TransactionRecord]]) -> Result[TransactionRecord]:
        next_id = self._next_id
        return decided(self.shard, decide, again=lambda: setattr(self, "_next_id", next_id))

    def _carry_out(self, result: Result[TransactionRecord]) -> list[Transaction | None]:
        self._apply(result.records)
        for effect in result.effects:
            effect()
        for ticket, answer in result.replies:
            self._answers[ticket] = answer.code if isinstance(answer, KafkaError) else answer
        return [record.transaction for record in result.records]

    def _apply(self, records: Sequence[TransactionRecord]) -> None:
        self.log += records
        for record in records:
            self.shard.apply(record)


def transaction(state: State = State.ONGOING, producer: Producer = PRODUCER, **fields: object) -> Transaction:
    """A transaction as a test needs it."""
    partitions = frozenset({A}) if state not in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT) else ()
    started_ms = -1 if state is State.EMPTY else START_MS
    return Transaction(
        ID, *producer, TIMEOUT_MS, state, START_MS, frozenset(partitions), started_ms, producer.producer_id
    )._replace(**fields)  # type: ignore[arg-type]  # the fields are Transaction's
