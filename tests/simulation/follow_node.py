"""A broker of the world `follow`: one replica on a faulty disk, which follows by the real state machine."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from broker.replica.following import BeginsInBatch, append_as_follower, take_watermarks
from broker.replica.partition import Partition
from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration
from coordinator.replication.fetcher import Fetcher, FetcherOptions, FollowerIdentity
from coordinator.replication.roles import Following, next_role
from coordinator.replication.session import PartitionKey
from coordinator.replication.steps import Correct, FollowerStep, Replicate
from coordinator.replication.truncation import RestartAt
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchPartition, FetchRequest
from protocol.records.batch import iter_batches
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.logs import Logs
from tests.simulation.faulty_disk import FaultyDisk

NAME = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
KEY = PartitionKey(TOPIC_ID, 0)
DATA = "/data"
FOREVER_MS = 1 << 50
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, file_delete_delay_ms=0, min_insync_replicas=2)
BACKOFF_MS = 20


class Node:
    """A broker: `start`, then steps, until `crash`."""

    def __init__(self, node_id: int, dice: Random) -> None:
        self.node_id = node_id
        self.disk = FaultyDisk(dice)
        self.is_alive = False
        self.broker_epoch = 0
        self.metadata = -1
        """Number of the controller's changes that this broker has."""
        self.request: FetchRequest | None = None
        """A Fetch in flight to `leader_id`."""
        self.leader_id = NO_LEADER
        self.sessions: dict[int, tuple[int, int, dict[PartitionKey, FetchPartition]]] = {}
        """The sessions of followers, by broker: id, next epoch, partitions."""
        self._folders = 0

    def start(self, now_ms: int) -> None:
        """Opens the log on the disk; its role comes with the metadata."""
        self.logs = Logs([DATA], disk=self.disk, unique=self._unique, recovery_threads=1)
        self.logs.load(lambda _: CONFIG, now_ms)
        log = self.logs.create(NAME, TOPIC_ID, CONFIG, now_ms)
        self.partition = Partition(NAME, TOPIC_ID, log)
        self.fetcher: Fetcher[Partition] = Fetcher(lambda: FetcherOptions(backoff_ms=BACKOFF_MS, max_bytes=900))
        self.sessions, self.request, self.metadata = {}, None, -1
        self.broker_epoch += 1
        self.is_alive = True

    def crash(self, *, power: bool) -> None:
        """Ends the process, or the machine with all data that was not flushed."""
        self.is_alive, self.request = False, None
        self.disk.crash(power=power)

    def _unique(self) -> str:
        self._folders += 1
        return f"{self._folders:032x}"

    def take(self, assigned: PartitionRegistration, now_ms: int) -> None:
        """Applies the controller's next change."""
        partition = self.partition
        partition.become(next_role(partition.role, assigned, self.node_id, partition.log_end_offset, now_ms), now_ms)
        role = partition.role
        if isinstance(role, Following) and role.leader_id != NO_LEADER:
            correction = self.fetcher.follow(KEY, NAME, partition, role.epoch)
            if correction is not None:
                self._correct(correction, now_ms)
            if self.leader_id != role.leader_id:  # another fetcher, with a session and a connection of its own
                self.request = None
                self.fetcher.session.restart(forget=True)
            self.leader_id = role.leader_id
        else:
            self.fetcher.unfollow(KEY)

    def next_request(self, now_ms: int) -> bool:
        """Sends a Fetch, if one is due."""
        self.request = self.fetcher.request(now_ms, FollowerIdentity(self.node_id, self.broker_epoch))
        return self.request is not None

    # Steps

    def carry_out(self, steps: list[FollowerStep[Partition]], now_ms: int) -> None:
        for step in steps:
            if isinstance(step, Replicate):
                self._replicate(step, now_ms)
            elif isinstance(step, Correct):
                self._correct(step, now_ms)

    def _replicate(self, step: Replicate[Partition], now_ms: int) -> None:
        followed = step.partition
        try:
            self._append(step, now_ms)
        except BeginsInBatch as error:
            self._cut(error.base_offset, now_ms, fully=True)
            self._append(step, now_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.FENCED_LEADER_EPOCH:
                raise
            self.fetcher.delay(followed, now_ms)
            return
        self.fetcher.replicated(followed)

    def _append(self, step: Replicate[Partition], now_ms: int) -> None:
        if len(step.records):
            records, epoch = memoryview(bytearray(step.records)), step.partition.leader_epoch
            append_as_follower(self.partition, records, epoch, step.log_start_offset, now_ms)
        take_watermarks(self.partition, step.high_watermark, step.log_start_offset)

    def _correct(self, step: Correct[Partition], now_ms: int) -> None:
        self._cut(step.correction.offset, now_ms, fully=isinstance(step.correction, RestartAt))
        self.fetcher.corrected(step.partition)

    def _cut(self, offset: int, now_ms: int, *, fully: bool) -> None:
        log = self.partition.log
        log.begin_truncation()
        self.logs.truncate_to(NAME, offset, now_ms, fully=fully)
        log.end_truncation()

    # Looking at it

    def batches(self, end: int) -> Iterator[tuple[int, bytes]]:
        """Yields base offset and bytes of every batch between the log's start and an offset."""
        offset = self.partition.log_start_offset
        while offset < end:
            for part in self.partition.read_all(offset, 10_000).parts:
                for position, header in iter_batches(part):
                    if header.base_offset >= end:
                        return
                    yield header.base_offset, bytes(part[position : position + header.size_bytes])
                    offset = header.next_offset
