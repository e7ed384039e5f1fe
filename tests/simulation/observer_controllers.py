"""Three controllers of a simulated quorum: logs, epochs and elections are a model of KRaft's; the answers to an
observer are Apache Kafka's.

The world makes the elections, as a quorum would: the elected controller has all records of a majority. Former leaders
continue in their epoch until they learn of a new one. Once, a majority may start with the disks of an old backup, which
no protocol survives: then a leader lacks committed records.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from coordinator.cluster.brokers.features import bootstrap_records
from coordinator.cluster.image import Image
from coordinator.cluster.image_records import records_of
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.record import MetadataBatch, MetadataRecord, decode_batches
from coordinator.cluster.snapshot import SnapshotId, write_snapshot
from coordinator.quorum.leadership import Location
from protocol.errors import ErrorCode
from protocol.messages import fetch, fetch_snapshot
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.metadata_records.settings import ConfigRecord
from tests.broker.metadata.quorums import LEVEL, Batch, batch
from tests.simulation.faulty_disk import FaultyDisk

IDS: Final = (100, 101, 102)
MAJORITY: Final = 2
TOPIC: Final = 2
"""The resource type of a topic's configs."""

MADE: Final = "/made"


class Controller:
    """A controller, with its log and its knowledge of the quorum."""

    def __init__(self, node_id: int, location: Location) -> None:
        self.node_id = node_id
        self.location = location
        self.is_up = True
        self.epoch = 0
        self.leader_id = -1
        self.log: list[Batch] = []
        self.snapshot: tuple[SnapshotId, bytes] | None = None
        self.high_watermark = 0
        self.progress: dict[int, int] = {}
        """The progress of the followers in the epoch that this controller leads."""

    @property
    def start_offset(self) -> int:
        return self.snapshot[0].offset if self.snapshot else 0

    @property
    def end_offset(self) -> int:
        return self.log[-1].next_offset if self.log else self.start_offset

    @property
    def last_epoch(self) -> int:
        if self.log:
            return self.log[-1].epoch
        return self.snapshot[0].epoch if self.snapshot else 0

    @property
    def leads(self) -> bool:
        return self.leader_id == self.node_id

    def append(self, records: Sequence[MetadataRecord]) -> None:
        """Appends a batch as the leader."""
        base_offset = self.end_offset
        data = batch(base_offset, self.epoch, *records)
        self.log.append(Batch(base_offset, base_offset + len(records), self.epoch, data))

    def copy(self, leader: Controller) -> None:
        """Copies a leader's log up to its end."""
        self.epoch, self.leader_id = leader.epoch, leader.leader_id
        self.log, self.snapshot = list(leader.log), leader.snapshot
        self.high_watermark = leader.high_watermark
        leader.progress[self.node_id] = self.end_offset

    def epoch_end(self, epoch: int) -> fetch.EpochEndOffset:
        """Returns the last epoch up to this one that the log has, and its end."""
        ends = {0: self.start_offset} if self.snapshot is None else {self.snapshot[0].epoch: self.start_offset}
        ends |= {one.epoch: one.next_offset for one in self.log}
        last = max((one for one in ends if one <= epoch), default=-1)
        return fetch.EpochEndOffset(epoch=last, end_offset=ends.get(last, -1))


class Quorum:
    """The controllers, and their committed records."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.nodes = {node_id: Controller(node_id, Location(f"c{node_id}", 9093)) for node_id in IDS}
        self.committed: dict[int, MetadataBatch] = {}
        """The committed batches, by base offset."""
        self.high_watermark = 0
        self.backup: tuple[list[Batch], tuple[SnapshotId, bytes] | None] = ([], None)
        self.replaced: dict[int, tuple[list[Batch], tuple[SnapshotId, bytes] | None]] = {}
        """The original disks of the controllers that started with a backup."""
        self._made = 0
        self.elect([*IDS])
        self.append(self.leader, bootstrap_records())
        self.replicate(IDS)

    @property
    def leader(self) -> Controller:
        """Returns the leader of the newest epoch."""
        return max((one for one in self.nodes.values() if one.leads), key=lambda one: one.epoch)

    # What happens

    def elect(self, majority: Sequence[int]) -> None:
        """Makes the controller with the longest log of these the leader of a new epoch; the others learn of it."""
        voters = [self.nodes[node_id] for node_id in majority]
        assert len(voters) >= MAJORITY
        elected = max(voters, key=lambda one: (one.last_epoch, one.end_offset, self.dice.random()))
        epoch = max(one.epoch for one in self.nodes.values()) + 1
        for one in voters:
            one.epoch, one.leader_id = epoch, elected.node_id
        elected.progress = {}
        self.append(elected)

    def append(self, leader: Controller, records: Sequence[MetadataRecord] = ()) -> None:
        """Appends some records, or a record that no other controller has written."""
        self._made += 1
        name = f"topic-{self._made % 5}"
        own = ConfigRecord(resource_type=TOPIC, resource_name=name, name="retention.ms", value=str(self._made))
        leader.append(list(records) or [own])

    def replicate(self, reached: Sequence[int]) -> None:
        """Copies the newest leader's log to the controllers that it reaches; records that a majority has are
        committed."""
        leader = self.leader
        for node_id in reached:
            follower = self.nodes[node_id]
            if follower is not leader and follower.is_up:
                follower.copy(leader)
        ends = sorted((leader.end_offset, *leader.progress.values()), reverse=True)
        if len(ends) >= MAJORITY:
            self._commit(leader, ends[MAJORITY - 1])

    def _commit(self, leader: Controller, offset: int) -> None:
        """Advances the commit, only by a record of the leader's own epoch."""
        own = [one.next_offset for one in leader.log if one.epoch == leader.epoch and one.next_offset <= offset]
        if not own or own[-1] <= leader.high_watermark:
            return
        leader.high_watermark = own[-1]
        if self.replaced:
            return  # who lacks what is committed commits nothing
        for one in leader.log:
            if self.high_watermark <= one.base_offset < own[-1]:
                (decoded,) = decode_batches(memoryview(one.data))
                self.committed[one.base_offset] = decoded
        self.high_watermark = own[-1]

    def clean(self, node: Controller) -> None:
        """Writes a snapshot of a controller's committed records, and deletes its log before it."""
        covered = [one for one in node.log if one.next_offset <= node.high_watermark]
        if not covered or self.replaced:
            return
        snapshot_id = SnapshotId(covered[-1].next_offset, covered[-1].epoch)
        node.snapshot = snapshot_id, written(self.image(snapshot_id.offset), snapshot_id)
        node.log = node.log[len(covered) :]

    def image(self, offset: int) -> Image:
        """Returns the fold of all records that were committed before an offset."""
        loader = MetadataLoader(Image("the-cluster"))
        for base_offset in sorted(self.committed):
            if base_offset < offset:
                loader.commit(self.committed[base_offset])
        return loader.image

    # A backup

    def back_up(self) -> None:
        """Stores a backup of the leader's committed records."""
        leader = self.leader
        self.backup = [one for one in leader.log if one.next_offset <= leader.high_watermark], leader.snapshot

    @property
    def backup_end(self) -> int:
        log, snapshot = self.backup
        return log[-1].next_offset if log else snapshot[0].offset if snapshot else 0

    def restore_backup(self) -> None:
        """Starts two of three controllers with the disks of the backup, and one of them leads; the third is stopped."""
        away, *replaced = self.dice.sample(IDS, len(IDS))
        self.nodes[away].is_up = False
        for node_id in replaced:
            node = self.nodes[node_id]
            self.replaced[node_id] = node.log, node.snapshot
            node.log, node.snapshot = list(self.backup[0]), self.backup[1]
            node.high_watermark = self.backup_end
            node.is_up = True
        self.elect(replaced)
        self.replicate(replaced)

    def bring_back(self) -> None:
        """Restores the original disks, and elects a leader among all three."""
        for node_id, (log, snapshot) in self.replaced.items():
            node = self.nodes[node_id]
            node.log, node.snapshot = log, snapshot
        self.replaced = {}
        for node in self.nodes.values():
            node.is_up = True
            node.high_watermark = min(self.high_watermark, node.end_offset)
        self.elect(IDS)
        self.replicate(IDS)


def written(image: Image, snapshot_id: SnapshotId) -> bytes:
    """Returns the bytes of a snapshot file."""
    disk = FaultyDisk(Random(0))
    records = list(records_of(image))
    write_snapshot(disk, MADE, records, metadata_version=LEVEL, last_timestamp=5, now_ms=9, epoch=snapshot_id.epoch)
    return next(bytes(file.data) for path, file in disk.files() if path == MADE)


# Answers


def has_news(node: Controller, request: FetchRequest, known_high_watermark: int) -> bool:
    """True if a Fetch would get new data."""
    requested = request.topics[0].partitions[0]
    return (
        not node.leads
        or requested.current_leader_epoch != node.epoch
        or node.end_offset != requested.fetch_offset
        or node.high_watermark > known_high_watermark
    )


def fetched(node: Controller, request: FetchRequest, leader: Location | None) -> FetchResponse:
    """Answers a Fetch, as KafkaRaftClient.handleFetchRequest does."""
    requested = request.topics[0].partitions[0]
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=error_of(node, requested.current_leader_epoch),
        high_watermark=node.high_watermark if node.leads else -1,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=node.leader_id, leader_epoch=node.epoch),
        records=b"",
    )
    if not partition.error_code:
        give(node, requested, partition)
    topic = fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])
    if leader is None:
        return FetchResponse(responses=[topic])
    endpoint = fetch.NodeEndpoint(node_id=node.leader_id, host=leader.host, port=leader.port)
    return FetchResponse(responses=[topic], node_endpoints=[endpoint])


def give(node: Controller, requested: fetch.FetchPartition, partition: fetch.PartitionData) -> None:
    """Adds records, the point where the logs diverge, or the snapshot to begin with."""
    offset, epoch = requested.fetch_offset, requested.last_fetched_epoch
    end = node.epoch_end(epoch)
    if node.snapshot is not None and (offset < node.start_offset or end.epoch < 0):
        snapshot_id = node.snapshot[0]
        partition.snapshot_id = fetch.SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch)
    elif offset and (end.epoch != epoch or offset > end.end_offset):
        partition.diverging_epoch = end
    else:
        partition.records = b"".join(one.data for one in node.log if one.base_offset >= offset)


def piece(node: Controller, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """Answers a FetchSnapshot."""
    requested = request.topics[0].partitions[0]
    snapshot_id = SnapshotId(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
    content = node.snapshot[1] if node.snapshot is not None and node.snapshot[0] == snapshot_id else None
    code = error_of(node, requested.current_leader_epoch)
    if not code and content is None:
        code = ErrorCode.SNAPSHOT_NOT_FOUND
    partition = fetch_snapshot.ResponsePartitionSnapshot(
        index=0,
        error_code=code,
        snapshot_id=requested.snapshot_id,
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=node.leader_id, leader_epoch=node.epoch),
        size=len(content or b""),
        position=requested.position,
        unaligned_records=(content or b"")[requested.position :][: request.max_bytes],
    )
    topic = fetch_snapshot.ResponseTopicSnapshot(name="__cluster_metadata", partitions=[partition])
    return FetchSnapshotResponse(error_code=0, topics=[topic])


def error_of(node: Controller, epoch: int) -> ErrorCode:
    """Returns the error of KafkaRaftClient.validateLeaderOnlyRequest."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > node.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if node.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER
