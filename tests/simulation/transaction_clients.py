"""Transactional producers that retry, stall, crash and are fenced, and consumers; both behave like real clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from coordinator.transaction.transaction import Producer
from protocol.errors import ErrorCode
from tests.broker.transacting import TransactionalClient, records_of
from tests.simulation.broker_world import BrokerWorld, Killed, SimulatedConnection
from tests.simulation.transaction_history import (
    UNKNOWN_TIME_MS,
    History,
    Outcome,
    Reader,
    Seen,
    Transaction,
    Write,
)
from tests.simulation.virtual_time import virtual_clock

A = TypeVar("A")

PARTITIONS = 2
TIMEOUT_MS = 2_000
LOSS = 0.02
RETRY_S = 0.02
STALL_S = TIMEOUT_MS / 1000 + 2

RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Crashed(Exception):
    """The process of the client has ended in the middle of its work."""


class Failed(Exception):
    """The transaction can't continue."""


class SimulatedProducer:
    """A sequence of processes with the same transactional id. The world is a BrokerWorld; a class for a cluster
    replaces the client."""

    def __init__(self, world: Any, history: History, name: str, *, v2: bool) -> None:
        self.world = world
        self.history = history
        self.name = name
        self.v2 = v2
        self.client = TransactionalClient(SimulatedConnection(world, LOSS), virtual_clock().now_ms)
        self.producer = Producer(-1, -1)
        self.sequences = [0] * PARTITIONS
        self.count = 0

    async def run(self, transactions: int) -> None:
        """Runs this number of transactions, whatever their outcomes."""
        await self.start()
        for _ in range(transactions):
            try:
                await self.one_transaction()
            except (Crashed, Failed):
                await asyncio.sleep(self.world.dice.uniform(0, 0.5))
                await self.start()

    async def start(self) -> None:
        """Sends InitProducerId until it is answered."""
        await self._retried(lambda: self.client.find(self.name, 1))

        async def init() -> ErrorCode:
            code, self.producer = await self.client.init(name=self.name, timeout_ms=TIMEOUT_MS)
            return code

        code = await self._repeated(init)
        assert code is ErrorCode.NONE, code
        self.sequences = [0] * PARTITIONS

    async def one_transaction(self) -> None:
        transaction = Transaction(f"{self.name}/{self.count}")
        self.count += 1
        self.history.transactions.append(transaction)
        dice = self.world.dice
        for _ in range(dice.randint(1, 4)):
            partition = dice.randrange(PARTITIONS)
            values = [f"{transaction.name}:{len(transaction.writes) + at}" for at in range(dice.randint(1, 3))]
            transaction.writes += [Write(partition, value) for value in values]
            self._maybe_crash()
            await self._write(partition, values)
        if dice.random() < 0.05:
            await asyncio.sleep(STALL_S)  # longer than its timeout
        self._maybe_crash()
        await self._end(transaction, committed=dice.random() < 0.7)

    async def _write(self, partition: int, values: list[str]) -> None:
        if not self.v2:
            await self._must(lambda: self._add(partition))
        version = 12 if self.v2 else 11
        sequence = self.sequences[partition]
        await self._must(
            lambda: self.client.write(
                self.producer, *values, partition=partition, sequence=sequence, name=self.name, version=version
            )
        )
        self.sequences[partition] += len(values)

    async def _add(self, partition: int) -> ErrorCode:
        (code,) = await self.client.add(self.producer, partition, name=self.name)
        return code

    async def _end(self, transaction: Transaction, *, committed: bool) -> None:
        """Ends the transaction; retries until an answer arrives."""
        attempts = 0

        async def end() -> ErrorCode:
            nonlocal attempts
            if committed and not attempts:
                transaction.commit_asked_ms = self.now_ms
            attempts += 1
            if committed:
                transaction.outcome = Outcome.UNKNOWN
            self._maybe_crash()
            version = 5 if self.v2 else 4
            code, producer = await self.client.end(self.producer, committed=committed, name=self.name, version=version)
            if code is ErrorCode.NONE and self.v2:
                self.producer, self.sequences = producer, [0] * PARTITIONS
            return code

        code = await self._repeated(end)
        if code is ErrorCode.NONE and committed:
            transaction.outcome = Outcome.COMMITTED
        elif attempts == 1:
            transaction.outcome = Outcome.ABORTED
        if code is not ErrorCode.NONE:
            raise Failed

    def _maybe_crash(self) -> None:
        if self.world.dice.random() < 0.02:
            raise Crashed

    @property
    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def _must(self, ask: Callable[[], Awaitable[ErrorCode]]) -> None:
        code = await self._repeated(ask)
        if code is not ErrorCode.NONE:
            raise Failed

    async def _repeated(self, ask: Callable[[], Awaitable[ErrorCode]]) -> ErrorCode:
        """Returns the first answer that needs no retry."""
        while True:
            code = await self._retried(ask)
            if code not in RETRIABLE:
                return code
            await asyncio.sleep(RETRY_S)

    async def _retried(self, ask: Callable[[], Awaitable[A]]) -> A:
        """Returns the answer of the first process of the broker that gives one."""
        while True:
            try:
                return await ask()
            except Killed:
                await asyncio.sleep(RETRY_S)


class SimulatedConsumer:
    """Reads all partitions repeatedly from their start."""

    def __init__(self, world: Any, history: History, name: str, *, committed: bool) -> None:
        self.world = world
        self.reader = Reader(name, committed=committed)
        history.readers.append(self.reader)
        self.client = TransactionalClient(SimulatedConnection(world, LOSS))
        self.positions = [0] * PARTITIONS

    async def run(self) -> None:
        while True:
            for partition in range(PARTITIONS):
                try:
                    self.reader.seen += await self.poll(partition)
                except Killed:
                    await asyncio.sleep(RETRY_S)
            await asyncio.sleep(self.world.dice.uniform(0, 0.2))

    async def poll(self, partition: int) -> list[Seen]:
        """Returns the records of the next fetch; an error counts as an empty answer, because it is transient."""
        data = await self.client.fetch(
            partition, offset=self.positions[partition], committed=self.reader.committed, max_wait_ms=50
        )
        if data.error_code:
            return []
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        records, next_offset = records_of(data, self.positions[partition])
        self.positions[partition] = next_offset
        return [Seen(partition, offset, value, now_ms) for offset, value in records]


async def read_to_the_end(world: BrokerWorld, *, committed: bool) -> list[Seen]:
    """Returns all records that such a consumer reads."""
    consumer = SimulatedConsumer(world, History(), "at last", committed=committed)
    consumer.client = TransactionalClient(SimulatedConnection(world))
    reads: list[Seen] = []
    for partition in range(PARTITIONS):
        while seen := await consumer.poll(partition):
            reads += [read._replace(time_ms=UNKNOWN_TIME_MS) for read in seen]
    return reads
