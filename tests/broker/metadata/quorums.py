"""A controller for tests, whose log a test writes. It answers observers and brokers as a quorum's leader does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from client.errors import PeerUnavailable
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.record import MetadataRecord, encode_batch
from coordinator.cluster.snapshot import SnapshotId
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.records.batch import stamp
from protocol.versions import ANY_VERSION

R = TypeVar("R")

LEVEL = 30
"""The metadata.version of the records."""


class Threads:
    """Runs work that waits for a disk at once."""

    async def call(self, work: Callable[[], R]) -> R:
        return work()


def batch(base_offset: int, epoch: int, *records: MetadataRecord) -> bytes:
    """Returns the records as a batch of a leader's log."""
    encoded = encode_batch(list(records), LEVEL, 0)
    stamp(encoded, 0, base_offset, epoch)
    return bytes(encoded)


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    epoch: int
    data: bytes


class FakeLeader:
    """A controller. It first gives a test's own `answers`, in order, and then answers as a leader."""

    def __init__(self, node_id: int = 100, epoch: int = 1) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.leader_id = node_id
        self.high_watermark = 0
        self.log: list[Batch] = []
        self.snapshot: tuple[SnapshotId, bytes] | None = None
        self.answers: list[object] = []
        self.requests: list[object] = []

    def write(self, *records: MetadataRecord, committed: bool = True) -> None:
        """Appends a batch."""
        base_offset = self.end_offset
        self.log.append(
            Batch(base_offset, base_offset + len(records), self.epoch, batch(base_offset, self.epoch, *records))
        )
        if committed:
            self.high_watermark = self.end_offset

    @property
    def end_offset(self) -> int:
        return self.log[-1].next_offset if self.log else self.start_offset

    @property
    def start_offset(self) -> int:
        return self.snapshot[0].offset if self.snapshot else 0

    async def send(
        self,
        request: object,
        response: type[R],
        *,
        timeout_ms: int,
        max_version: int = ANY_VERSION,
        max_dials: int | None = None,
    ) -> R:
        """Answers a request, like `Peer.send`."""
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, response)
        return answer

    def answer(self, request: object) -> object:
        return self._piece(request) if isinstance(request, FetchSnapshotRequest) else self._fetched(request)

    def _fetched(self, request: object) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        requested = request.topics[0].partitions[0]
        partition = fetch.PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=self.high_watermark,
            current_leader=fetch.LeaderIdAndEpoch(leader_id=self.leader_id, leader_epoch=self.epoch),
            records=b"",
        )
        if self.snapshot is not None and requested.fetch_offset < self.start_offset:
            snapshot_id = self.snapshot[0]
            partition.snapshot_id = fetch.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch)
        elif (diverging := self._diverging(requested)) is not None:
            partition.diverging_epoch = diverging
        else:
            partition.records = b"".join(one.data for one in self.log if one.base_offset >= requested.fetch_offset)
        return FetchResponse(responses=[fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])])

    def _diverging(self, requested: fetch.FetchPartition) -> fetch.EpochEndOffset | None:
        """Returns the point at which this log diverges from the fetcher's."""
        if requested.fetch_offset == 0:
            return None
        ends = [one.next_offset for one in self.log if one.epoch <= requested.last_fetched_epoch]
        epochs = [one.epoch for one in self.log if one.epoch <= requested.last_fetched_epoch]
        end, epoch = (ends[-1], epochs[-1]) if ends else (self.start_offset, 0)
        if epoch == requested.last_fetched_epoch and requested.fetch_offset <= end:
            return None
        return fetch.EpochEndOffset(epoch=epoch, end_offset=end)

    def _piece(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        requested = request.topics[0].partitions[0]
        assert self.snapshot is not None
        snapshot_id, content = self.snapshot
        partition = fetch_snapshot.ResponsePartitionSnapshot(
            index=0,
            error_code=0,
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
            current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=self.leader_id, leader_epoch=self.epoch),
            size=len(content),
            position=requested.position,
            unaligned_records=content[requested.position : requested.position + request.max_bytes],
        )
        topic = fetch_snapshot.ResponseTopicSnapshot(name="__cluster_metadata", partitions=[partition])
        return FetchSnapshotResponse(error_code=0, topics=[topic])


def lost() -> PeerUnavailable:
    """Raises the error of an answer that was lost."""
    return PeerUnavailable("controller", "connection lost", sent=True)
