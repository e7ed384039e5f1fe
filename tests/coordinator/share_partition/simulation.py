"""A share group on one partition, driven by a seed: members that crash, stall, and acknowledge in parts, twice and
late; a coordinator with failing or slow writes; compaction and retention; restarts.

A real shard of the share coordinator stores the state, so that a restart loads the records that were really written.
After each step `check` compares the invariants with a ledger of deliveries and acknowledgements.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from coordinator.cluster.topics.topic import Topic
from coordinator.engine.result import Ticket
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareSerde, ShareState
from coordinator.share.settings import ShareSettings
from coordinator.share.shard import ShareShard, StateWrite
from coordinator.share_partition.acknowledge import Acknowledgement
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.request import BATCH_OPTIMIZED, RECORD_LIMIT, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Limits
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, TERMINAL, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Compression
from tests.coordinator.purity import decided
from tests.coordinator.share_partition.given import (
    Change,
    acknowledge,
    expire,
    release,
    share_partition,
)

TOPIC_ID = b"t" * 16
KEY = ShareKey("group", TOPIC_ID, 0)
LOCK_MS = 1_000
MEMBERS = ("m1", "m2", "m3", "m4")
LARGEST_BATCH = 12

SAID = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)


class Topics:
    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        topic = Topic("topic", topic_id)
        topic.partitions[0] = None  # type: ignore[assignment]
        return topic


class Simulation:
    """A run of the simulation."""

    SLACK = LARGEST_BATCH
    """Number of records by which acquisitions may exceed the limit, because whole batches are acquired."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 1_000_000
        self.limits = Limits(
            max_delivery_count=self.random.choice([2, 3, 5]),
            max_in_flight_records=self.random.choice([20, 50, 100]),
            lock_duration_ms=LOCK_MS,
            redelivery_backoff_ms=self.random.choice([0, 0, 200]),
        )
        self.batches: list[tuple[int, int]] = []
        self.end = 0
        self.log_start = 0
        self.shard = ShareShard(lambda: ShareSettings(self.random.choice([0, 3, 10]), 10**9), Topics())
        self.serde = ShareSerde(lambda: Compression.NONE)
        self.log: list[bytes] = []
        self.leader_epoch = 0
        self.writing: list[Change] = []
        self.held: dict[str, list[tuple[int, int]]] = {member: [] for member in MEMBERS}
        self.counts: dict[int, int] = {}
        """The number of deliveries of each offset."""
        self.done: set[int] = set()
        """Offsets whose final state is durable: they must never be delivered again."""
        self.least_start = 0
        self._apply(self.shard.initialize(KEY, 1, 0, Ticket(), self.now_ms))
        self.partition = self._load()

    # The coordinator.

    def _apply(self, result: ShareResult) -> None:
        for record in result.records:
            self.log.append(bytes(self.serde.batches(self.serde.encode([record], self.now_ms))))
            self.shard.apply(record)

    def _load(self) -> SharePartition:
        """Loads the share partition for a new leader; the coordinator may be loaded again as well."""
        if self.random.random() < 0.5:
            self.shard = ShareShard(lambda: ShareSettings(5, 10**9), Topics())
            for batch in self.log:
                for record in self.serde.decode(memoryview(batch)):
                    self.shard.apply(record._replace(offset=-1))
        self.leader_epoch += 1
        result = self.shard.read(KEY, self.leader_epoch, Ticket(), self.now_ms)
        self._apply(result)
        state = result.replies[0].answer
        assert isinstance(state, ShareState)
        start = 0 if state.start_offset == NO_START_OFFSET else state.start_offset
        partition = share_partition(start, state.batches, self.limits)
        self.loaded = partition.in_flight_count  # a start offset that was not stored brings back more than the cap
        return partition

    def _write(self, change: Change | None) -> None:
        if change is None:
            return
        self.writing.append(change)
        if self.random.random() < 0.7:
            self.write_done()

    def write_done(self) -> None:
        """Completes the oldest pending write, or makes it fail."""
        if not self.writing:
            return
        change = self.writing.pop(0)
        is_written = self.random.random() < 0.8
        if is_written:
            written = StateWrite(
                1, self.leader_epoch, change.start_offset, change.delivery_complete_count, change.batches
            )
            self._apply(self.shard.write(KEY, written, Ticket(), self.now_ms))
        self.partition.complete(change.batches, is_written, self.now_ms)
        if is_written:
            for first, last, state, _ in change.batches:
                if state in TERMINAL:
                    self.done.update(range(first, last + 1))

    # The log.

    def produce(self) -> None:
        """Appends a batch, sometimes with missing offsets before it, as after compaction."""
        if self.random.random() < 0.1:
            self.end += self.random.randint(1, 5)
        size = self.random.randint(1, LARGEST_BATCH)
        self.batches.append((self.end, self.end + size - 1))
        self.end += size

    def compact(self) -> None:
        """Removes a batch from the log."""
        if len(self.batches) > 2:
            self.batches.pop(self.random.randrange(len(self.batches) - 1))

    def retain(self) -> None:
        """Moves the log's start forward."""
        if len(self.batches) > 4:
            self.log_start = self.batches[1][0]
            self.batches = self.batches[1:]
            move_log_start(self.partition, self.log_start)

    # Members.

    def fetch(self) -> None:
        member = self.random.choice(MEMBERS)
        if not self.partition.can_acquire:
            return
        offset = self.partition.next_fetch_offset()
        if offset < self.log_start:
            move_log_start(self.partition, self.log_start)
            return
        read = [FetchedBatch(*batch) for batch in self.batches if batch[1] >= offset][: self.random.randint(1, 4)]
        mode = self.random.choice([BATCH_OPTIMIZED, RECORD_LIMIT])
        request = AcquireRequest(member, self.random.randint(1, 20), self.random.randint(1, 20), mode)
        for first, last, count in acquire(self.partition, request, offset, read, self.now_ms):
            assert not self.done.intersection(range(first, last + 1)), f"{first}-{last} was done with"
            assert 1 <= count <= self.limits.max_delivery_count
            for at in range(first, last + 1):
                assert self.counts.get(at, 0) < count or self.counts.get(at, 0) == 0, (
                    f"{at} was delivered {count} times"
                )
                self.counts[at] = count
            self.held[member].append((first, last))

    def speak(self) -> None:
        """Acknowledges all, half or each of the records that a member has, or once had."""
        member = self.random.choice(MEMBERS)
        if not self.held[member]:
            return
        first, last = self.random.choice(self.held[member])
        if self.random.random() < 0.8:
            self.held[member].remove((first, last))
        if self.random.random() < 0.3:
            last = (first + last) // 2
        if self.random.random() < 0.3:
            types = [int(self.random.choice((*SAID, AcknowledgeType.RENEW))) for _ in range(first, last + 1)]
        else:
            types = [int(self.random.choice(SAID))]
        try:
            self._write(
                acknowledge(self.partition, member, [Acknowledgement(first, last, types)], self.now_ms, decided)
            )
        except KafkaError as error:
            if error.code not in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST):
                raise

    def crash(self) -> None:
        """Closes a member's connection."""
        member = self.random.choice(MEMBERS)
        self.held[member].clear()
        self._write(release(self.partition, member, decided))

    def wait(self) -> None:
        self.now_ms += self.random.randint(1, LOCK_MS)
        self._write(expire(self.partition, self.now_ms, decided))

    def restart(self) -> None:
        """Restarts: unwritten changes and all locks are lost."""
        self.writing.clear()
        self.counts.clear()
        for held in self.held.values():
            held.clear()
        self.partition = self._load()
        self.least_start = 0
        move_log_start(self.partition, self.log_start)

    # What must hold.

    def check(self) -> None:
        partition, cache = self.partition, self.partition.cache
        assert partition.start_offset >= self.least_start, "the start offset fell"
        self.least_start = partition.start_offset
        end = -1
        complete = 0
        for batch in cache:
            assert batch.first > end
            end = batch.first - 1
            for run in batch.runs:
                assert run.first == end + 1 <= run.last + 1, states(cache.batches)
                end = run.last
                assert run.delivery_count <= self.limits.max_delivery_count
                assert (run.state is ACQUIRED) == bool(run.member_id)
                if run.state in TERMINAL:
                    complete += cache.index.from_start(run)
            assert end == batch.last
        assert partition.delivery_complete_count == complete, (partition, partition.delivery_complete_count, complete)
        assert not cache.batches or end == cache.last_offset <= partition.end_offset
        acquired = sum(cache.index.from_start(run) for batch in cache for run in batch.runs if run.state is ACQUIRED)
        assert acquired <= max(self.limits.max_in_flight_records, self.loaded) + self.SLACK

    ACTIONS: tuple[tuple[int, Callable[[Simulation], None]], ...] = (
        (10, produce),
        (1, compact),
        (1, retain),
        (20, fetch),
        (20, speak),
        (2, crash),
        (6, wait),
        (6, write_done),
        (1, restart),
    )

    def run(self, steps: int) -> None:
        weights = [weight for weight, _ in self.ACTIONS]
        actions = [action for _, action in self.ACTIONS]
        for action in self.random.choices(actions, weights, k=steps):
            action(self)
            self.check()
        self.drain()

    def drain(self) -> None:
        """Runs without stalls: everything that is still in the log reaches its final state, and nothing is
        forgotten."""
        for member in MEMBERS:
            self.held[member].clear()
            change = release(self.partition, member, decided)
            if change is not None:
                self.writing.append(change)
        for _ in range(100 * (len(self.batches) + 10)):
            while self.writing:
                self.partition.complete(self.writing.pop(0).batches, True, self.now_ms)
            self.now_ms += LOCK_MS
            if (change := expire(self.partition, self.now_ms)) is not None:
                self.writing.append(change)
                continue
            offset = self.partition.next_fetch_offset()
            read = [FetchedBatch(*batch) for batch in self.batches if batch[1] >= offset]
            if not read:
                break
            request = AcquireRequest("m1", 1000, 1000)
            for first, last, _ in acquire(self.partition, request, offset, read, self.now_ms):
                change = acknowledge(self.partition, "m1", [Acknowledgement(first, last, [1])], self.now_ms)
                if change is not None:
                    self.writing.append(change)
            self.check()
        left = [batch for batch in self.partition.cache.batches if batch.last >= self.partition.start_offset]
        assert not left, f"left behind: {left}"
        assert self.partition.start_offset >= (self.batches[-1][1] + 1 if self.batches else 0)


def states(batches: object) -> str:
    return str(batches)
