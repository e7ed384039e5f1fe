"""Keeps the brokers' image up to date: applies committed batches, and passes the changes to subscribers.

The records of a metadata transaction count all or none: they are held back until it ends (KIP-868).

Source: Kafka's MetadataLoader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from coordinator.cluster.changes import Change, Delta, Subscriber
from coordinator.cluster.difference import difference
from coordinator.cluster.image import DRAFTABLE, Image
from coordinator.cluster.record import MetadataBatch, MetadataRecord
from coordinator.cluster.snapshot import Snapshot, SnapshotId
from protocol.errors import ErrorCode, KafkaError
from protocol.metadata_records.log import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from protocol.records.control import KRaftVersionRecord, QuorumRecord, VotersRecord

SLICE: Final = 500
"""Records that are applied before other work of the event loop: each takes three to ten microseconds."""


def raised(error: Exception) -> None:
    """Raises a subscriber's error: the default if the owner doesn't handle it."""
    raise error


class MetadataLoader:
    """The only writer of the image that brokers see."""

    def __init__(self, image: Image, on_fault: Callable[[Exception], None] = raised) -> None:
        """`on_fault` is called with the error of a subscriber that failed; the other subscribers still get the
        delta.
        """
        self.image = image
        self.voters: VotersRecord | None = None
        """The quorum's voters, if the log has them and not the configuration."""
        self.last_timestamp_ms = 0
        """The timestamp of the last applied batch."""
        self.snapshots_loaded = 0
        """Number of snapshots that the image was loaded from."""
        self.on_fault = on_fault
        self._transaction: list[tuple[int, MetadataRecord]] | None = None
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Calls `subscriber` with the delta of each later batch, in order, after the image has all of it."""
        self._subscribers.append(subscriber)

    @property
    def in_transaction(self) -> bool:
        """True if a metadata transaction is open. Its records are discarded unless it is committed."""
        return self._transaction is not None

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Loads a snapshot into the empty image. Of the snapshot at offset 0, only the voters: it was written by the
        format, and its records are in the cluster once a controller has written them into the log (KIP-1170). Raises
        KafkaError(CORRUPT_MESSAGE).
        """
        for record in snapshot.quorum:
            self._note(record)
        if snapshot_id.offset > 0:
            for offset, metadata_record in enumerate(snapshot.records):
                _apply(self.image, offset, metadata_record)
        self.image.offset, self.image.epoch = snapshot_id.offset - 1, snapshot_id.epoch
        self.last_timestamp_ms = snapshot.last_timestamp_ms
        self.snapshots_loaded += 1

    def replace(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Replaces the image by a later snapshot, if the records before it are not available; subscribers get the
        difference. Raises KafkaError(CORRUPT_MESSAGE), and then nothing has changed.
        """
        fresh = MetadataLoader(Image(self.image.cluster_id))
        fresh.load_snapshot(snapshot_id, snapshot)
        after = fresh.image
        after.controller_id, after.controller_epoch = self.image.controller_id, self.image.controller_epoch
        changes = difference(self.image, after)
        self.image.become(after)
        self.voters = fresh.voters
        self.last_timestamp_ms = fresh.last_timestamp_ms
        self.snapshots_loaded += 1
        self._transaction = None
        self._publish(Delta(after.offset, after.epoch, changes))

    def commit(self, batch: MetadataBatch) -> None:
        """Applies the next committed batch. Raises KafkaError(CORRUPT_MESSAGE) if it doesn't fit the image."""
        for _ in self.committing(batch):
            pass

    def committing(self, batch: MetadataBatch) -> Iterator[None]:
        """Applies the next committed batch as `commit` does, but yields after each slice of a large batch. Until the
        last slice the image is as it was before the batch. No other batch may be applied meanwhile."""
        for control in batch.quorum:
            self._note(control)
        records = list(self._counted(batch))
        is_large = len(records) > SLICE and all(type(record) in DRAFTABLE for _, record in records)
        image = self.image.draft() if is_large else self.image
        changes: list[Change] = []
        for count, (offset, record) in enumerate(records, 1):
            change = _apply(image, offset, record)
            if change is not None:
                changes.append(change)
            if is_large and not count % SLICE:
                yield
        if is_large:
            self.image.adopt(image)
        if self._transaction is None:
            self.image.offset, self.image.epoch = batch.last_offset, batch.epoch
            self.last_timestamp_ms = batch.timestamp_ms
            if batch.records:
                self._publish(Delta(batch.last_offset, batch.epoch, changes))

    def _publish(self, delta: Delta) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(delta)
            except Exception as error:
                self.on_fault(error)

    def _note(self, record: QuorumRecord) -> None:
        if isinstance(record, KRaftVersionRecord):
            self.image.kraft_version = record.k_raft_version
        elif isinstance(record, VotersRecord):
            self.voters = record

    def _counted(self, batch: MetadataBatch) -> Iterator[tuple[int, MetadataRecord]]:
        """Yields the records that take effect with this batch, and their offsets. The records of a metadata transaction
        take effect when it ends."""
        for offset, record in enumerate(batch.records, batch.base_offset):
            if isinstance(record, BeginTransactionRecord):
                self._transaction = []
            elif isinstance(record, EndTransactionRecord):
                yield from self._transaction or ()
                self._transaction = None
            elif isinstance(record, AbortTransactionRecord):
                self._transaction = None
            elif self._transaction is not None:
                self._transaction.append((offset, record))
            else:
                yield offset, record


def _apply(image: Image, offset: int, record: MetadataRecord) -> Change | None:
    try:
        return image.apply(record)
    except KeyError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {offset}: {error}") from error
