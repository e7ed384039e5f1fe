"""One partition of a fetch: the parameters of its request, then its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.replica.partition import Partition
from broker.replica.replica import NO_OFFSET, LogOffsetSnapshot
from coordinator.replication.roles import NO_EPOCH, LeaderMoved
from protocol.errors import KafkaError
from protocol.types import Buffer, TopicPartition
from storage.epochs import EpochEnd
from storage.segment.file import EMPTY
from storage.segment.txn_index import AbortedTxn

NO_REPLICA: Final = -1
"""The preferred read replica of an answer if the consumer should stay with this replica."""


class FetchedPartition(LogOffsetSnapshot):
    """The offset to read from, the size limit and the client's epochs; then the offsets and records read, or the error.

    One object has both, because every request makes an object for each of its partitions. A session's partitions last
    from request to request, and also have the offsets that were last reported to the client.
    """

    __slots__ = (
        "aborted", "current_leader_epoch", "diverging", "error_code", "fetch_offset", "index", "is_missing",
        "is_special", "key", "last_fetched_epoch", "leader", "max_bytes", "name", "preferred", "records", "replica",
        "replica_log_start", "reported_high_watermark", "reported_start_offset",
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
        """The topic's id; before version 13 its name, after a length (`replicas.compact`)."""
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = max(current_leader_epoch, NO_EPOCH)
        self.last_fetched_epoch = last_fetched_epoch
        self.replica_log_start = replica_log_start
        """The log start offset of a follower."""
        self.reported_high_watermark = NO_OFFSET
        self.reported_start_offset = NO_OFFSET
        self.name: TopicPartition | None = None
        """The topic's name; None until the topic is looked up. A session's partition keeps the name after the topic's
        id is gone."""
        self.replica: Partition | None = None
        """The partition that was read, whose appends the fetch may wait for."""
        self.records: Buffer = EMPTY
        self.aborted: Sequence[AbortedTxn] | None = None
        """Transactions whose records a read-committed consumer drops (KIP-98); None for a consumer that reads
        uncommitted."""
        self.is_special = False
        """True if the answer has an error code, or one of `is_missing`, `diverging`, `leader` and `preferred`."""
        self.error_code = 0
        self.is_missing = False
        """True if this broker has no such partition. It is answered last, and doesn't end the wait for the others:
        otherwise the consumer of a deleted topic would fetch without pause."""
        self.diverging: EpochEnd | None = None
        """The epoch and offset at which the fetcher's log diverges from this one (KIP-595)."""
        self.leader: LeaderMoved | None = None
        """The current leader and its epoch (KIP-951)."""
        self.preferred = NO_REPLICA
        """The broker to read from instead (KIP-392)."""

    @property
    def is_urgent(self) -> bool:
        """True for an error, a diverging log, or another replica to read from: the answer must not wait
        (KAFKA-13767)."""
        has_failed = self.error_code != 0 and not self.is_missing
        return has_failed or self.diverging is not None or self.preferred != NO_REPLICA

    @property
    def is_plain(self) -> bool:
        """True if the answer consists only of offsets, records and an error code."""
        has_tags = self.diverging is not None or self.leader is not None
        return not (self.aborted or has_tags or self.preferred != NO_REPLICA)

    def update_request(self, newer: FetchedPartition) -> None:
        """Sets the parameters to those of the client's newest request for the partition."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.replica_log_start = newer.replica_log_start

    def has_all_of(self, partition: Partition) -> bool:
        """True if the client knows this partition's current offsets, in its leader epoch, and has all records."""
        return (
            self.fetch_offset == partition.log_end_offset
            and self.current_leader_epoch == partition.leader_epoch
            and self.reported_high_watermark == partition.high_watermark
            and self.reported_start_offset == partition.log_start_offset
            and partition.leads
            and self.name == partition.name
        )

    def clear(self) -> None:
        """Removes the answer."""
        self.replica = None
        self.records = EMPTY
        self.aborted = None
        if self.is_special:
            self.is_special = self.is_missing = False
            self.error_code = 0
            self.diverging = self.leader = None
            self.preferred = NO_REPLICA

    def fail(self, error: KafkaError) -> None:
        """Sets the answer to an error."""
        self.clear()
        self.clear_offsets()
        self.is_special = True
        self.error_code = int(error.code)
        if isinstance(error, LeaderMoved):
            self.leader = error

    def miss(self, error: KafkaError) -> None:
        """Sets the answer to the error of a partition that this broker doesn't have."""
        self.fail(error)
        self.is_missing, self.aborted = True, ()

    def diverge(self, end: EpochEnd) -> None:
        """Sets the answer to the point at which the fetcher's log diverges."""
        self.is_special, self.diverging = True, end

    def prefer(self, broker_id: int) -> None:
        """Sets the answer to another replica, from which the consumer should read."""
        self.is_special, self.preferred = True, broker_id

    def update_reported(self) -> bool:
        """Updates the reported offsets to the answer's. True if they differ from those last reported."""
        high_watermark, start = self.high_watermark, self.log_start_offset
        if high_watermark == self.reported_high_watermark and start == self.reported_start_offset:
            return False
        self.reported_high_watermark, self.reported_start_offset = high_watermark, start
        return True
