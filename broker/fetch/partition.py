"""One partition of a fetch: what its client wants of it, and what it answers before that is written."""

from __future__ import annotations

from collections.abc import Sequence

from broker.replica.partition import Partition
from broker.replica.replica import NO_OFFSET, LogOffsetSnapshot
from broker.replica.roles import NO_EPOCH, LeaderMoved
from protocol.errors import KafkaError
from protocol.types import Buffer, TopicPartition
from storage.epochs import EpochEnd
from storage.segment.file import EMPTY
from storage.segment.txn_index import AbortedTxn


class FetchedPartition(LogOffsetSnapshot):
    """From where to read, how much, and with which epochs in mind; then its offsets, its records, or its error.

    One object for both: there is one of them for each partition of each request. A session's goes on from request to
    request, and also knows what its client was told last.
    """

    __slots__ = (
        "aborted", "current_leader_epoch", "diverging", "error_code", "fetch_offset", "index", "is_missing",
        "is_special", "key", "last_fetched_epoch", "leader", "max_bytes", "name", "records", "replica",
        "replica_log_start", "told_high_watermark", "told_start_offset",
    )  # fmt: skip

    def __init__(
        self,
        key: bytes,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        replica_log_start: int = NO_OFFSET,
    ) -> None:
        super().__init__()
        self.key = key
        """The topic's id; before version 13 its name, behind a length (`replicas.compact`)."""
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = max(current_leader_epoch, NO_EPOCH)
        self.last_fetched_epoch = last_fetched_epoch
        self.replica_log_start = replica_log_start
        """Where the log of a follower begins."""
        self.told_high_watermark = NO_OFFSET
        self.told_start_offset = NO_OFFSET
        self.name: TopicPartition | None = None
        """Once it is known: it outlives the topic's id."""
        self.replica: Partition | None = None
        """Where it was read, and more is waited for."""
        self.records: Buffer = EMPTY
        self.aborted: Sequence[AbortedTxn] | None = None
        """Transactions whose records a read-committed consumer leaves out (KIP-98); None for who reads all."""
        self.is_special = False
        """True where any of the following says something."""
        self.error_code = 0
        self.is_missing = False
        """True where the partition is not here. It is answered last, and the others are waited for all the same: else a
        consumer of a topic that was deleted would ask without pause."""
        self.diverging: EpochEnd | None = None
        """Where the fetcher's log left this one (KIP-595)."""
        self.leader: LeaderMoved | None = None
        """Who leads instead, or in which epoch (KIP-951)."""

    @property
    def is_urgent(self) -> bool:
        """True of an error or a diverging log: the client should hear of it now."""
        return (self.error_code != 0 and not self.is_missing) or self.diverging is not None

    @property
    def is_plain(self) -> bool:
        """True where it has nothing but offsets, records and an error code."""
        return not self.aborted and self.diverging is None and self.leader is None

    def renew(self, newer: FetchedPartition) -> None:
        """Takes over what the same client wants of the same partition now."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.replica_log_start = newer.replica_log_start

    def clear(self) -> None:
        """Answers nothing yet."""
        self.replica = None
        self.records = EMPTY
        self.aborted = None
        if self.is_special:
            self.is_special = self.is_missing = False
            self.error_code = 0
            self.diverging = self.leader = None

    def fail(self, error: KafkaError) -> None:
        """Answers this error alone."""
        self.clear()
        self.clear_offsets()
        self.is_special = True
        self.error_code = int(error.code)
        if isinstance(error, LeaderMoved):
            self.leader = error

    def miss(self, error: KafkaError) -> None:
        """Answers that the partition is not here."""
        self.fail(error)
        self.is_missing, self.aborted = True, ()

    def diverge(self, end: EpochEnd) -> None:
        """Answers where the fetcher's log left this one."""
        self.is_special, self.diverging = True, end

    def changed(self) -> bool:
        """Notes what the client is about to be told; True where that is news."""
        high_watermark, start = self.high_watermark, self.log_start_offset
        if high_watermark == self.told_high_watermark and start == self.told_start_offset:
            return False
        self.told_high_watermark, self.told_start_offset = high_watermark, start
        return True
