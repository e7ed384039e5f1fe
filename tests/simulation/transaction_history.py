"""The history of clients: their actions and reads, searched for the anomalies that Jepsen defines for Kafka.

Each value is written once, by one transaction. Source: Jepsen's workload for Kafka and its definitions of lost writes,
duplicates, aborted reads (G1a), intermediate reads (G1b), non-monotonic polls and poll skips.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

UNKNOWN_TIME_MS = 1 << 60


class Outcome(Enum):
    """The outcome of a transaction as its producer knows it."""

    COMMITTED = "the commit was answered"
    ABORTED = "no commit was asked for, or it was refused"
    UNKNOWN = "a commit was asked for, and nobody said what came of it"


class Write(NamedTuple):
    """The value that a transaction wrote to a partition."""

    partition: int
    value: str


class Transaction:
    """A transaction of a producer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.writes: list[Write] = []
        self.outcome = Outcome.ABORTED
        self.commit_asked_ms = UNKNOWN_TIME_MS


class Seen(NamedTuple):
    """A record that a consumer has read."""

    partition: int
    offset: int
    value: str
    time_ms: int


class Reader:
    """The reads of one consumer, in order, since it was at the start of the partitions."""

    def __init__(self, name: str, *, committed: bool) -> None:
        self.name = name
        self.committed = committed
        self.seen: list[Seen] = []


class Kind(Enum):
    LOST_WRITE = "lost write"
    DUPLICATE = "duplicate"
    G1A = "aborted read"
    G1B = "intermediate read"
    NON_MONOTONIC = "non-monotonic poll"
    POLL_SKIP = "poll skip"


class Anomaly(NamedTuple):
    kind: Kind
    what: str


class History:
    """All transactions, all readers, and the final content of the log."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.readers: list[Reader] = []
        self.final: list[Seen] = []
        """The reads of a final read-committed consumer, from the start of every partition to its end."""

    def anomalies(self) -> list[Anomaly]:
        """Returns all anomalies."""
        return [
            *self._lost(),
            *self._duplicates(),
            *self._aborted_reads(),
            *self._intermediate_reads(),
            *self._non_monotonic_polls(),
            *self._poll_skips(),
        ]

    def _lost(self) -> Iterator[Anomaly]:
        present = {(read.partition, read.value) for read in self.final}
        for transaction in self.transactions:
            if transaction.outcome is Outcome.COMMITTED:
                for write in transaction.writes:
                    if write not in present:
                        yield Anomaly(Kind.LOST_WRITE, f"{write} of {transaction.name} was committed")

    def _duplicates(self) -> Iterator[Anomaly]:
        places = {(seen.value, seen.partition, seen.offset) for seen in self._committed_reads()}
        for value, count in Counter(value for value, _, _ in places).items():
            if count > 1:
                yield Anomaly(Kind.DUPLICATE, f"{value} is at {count} offsets")

    def _committed_reads(self) -> Iterator[Seen]:
        yield from self.final
        for reader in self.readers:
            if reader.committed:
                yield from reader.seen

    def _aborted_reads(self) -> Iterator[Anomaly]:
        aborted = {
            write.value
            for transaction in self.transactions
            if transaction.outcome is Outcome.ABORTED
            for write in transaction.writes
        }
        for seen in self._committed_reads():
            if seen.value in aborted:
                yield Anomaly(Kind.G1A, f"{seen} was aborted")

    def _intermediate_reads(self) -> Iterator[Anomaly]:
        """Yields values that were read before their transaction's commit was requested, and incomplete transactions."""
        asked_ms = {
            write.value: transaction.commit_asked_ms
            for transaction in self.transactions
            if transaction.outcome is not Outcome.ABORTED
            for write in transaction.writes
        }
        for seen in self._committed_reads():
            if seen.time_ms < asked_ms.get(seen.value, 0):
                yield Anomaly(Kind.G1B, f"{seen} before its commit was asked for")
        values = {read.value for read in self.final}
        for transaction in self.transactions:
            here = [write.value in values for write in transaction.writes]
            if any(here) and not all(here):
                yield Anomaly(Kind.G1B, f"a part of {transaction.name}: {transaction.writes}")

    def _by_partition(self) -> Iterator[tuple[Reader, int, list[Seen]]]:
        for reader in self.readers:
            for partition in {read.partition for read in reader.seen}:
                yield reader, partition, [read for read in reader.seen if read.partition == partition]

    def _non_monotonic_polls(self) -> Iterator[Anomaly]:
        for reader, partition, seen in self._by_partition():
            for before, after in pairwise(seen):
                if after.offset <= before.offset:
                    yield Anomaly(
                        Kind.NON_MONOTONIC, f"{reader.name}: {after.offset} of {partition} after {before.offset}"
                    )

    def _poll_skips(self) -> Iterator[Anomaly]:
        offsets: dict[int, list[int]] = {}
        for read in self.final:
            offsets.setdefault(read.partition, []).append(read.offset)
        for reader, partition, seen in self._by_partition():
            handed_out = {read.offset for read in seen}
            last = max(handed_out)
            for offset in offsets.get(partition, ()):
                if offset < last and offset not in handed_out:
                    yield Anomaly(Kind.POLL_SKIP, f"{reader.name}: {offset} of {partition} is passed over")
