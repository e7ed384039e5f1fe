"""A share partition, its log, its members and its coordinator, with steps and invariants from a seed.

Members crash, stall, and acknowledge halves, twice and late; writes fail, take their time, or succeed without an
answer; the log is compacted and retained; leaders and coordinators restart; the state topic is pruned and loaded again;
there are cold snapshots, and a dead-letter queue. A model stores which member has which record until when, its
acknowledgements, and the coordinator's records. Each step is compared with the model, by named invariants.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from coordinator.cluster.topics.topic import Topic
from coordinator.engine.result import Ticket
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareSerde, ShareState
from coordinator.share.settings import ShareSettings
from coordinator.share.shard import ShareShard, StateWrite
from coordinator.share_partition import acquire as acquiring
from coordinator.share_partition import expiry
from coordinator.share_partition.acknowledge import Acknowledgement
from coordinator.share_partition.request import BATCH_OPTIMIZED, RECORD_LIMIT, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Limits
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, ARCHIVING, RENEW, TERMINAL, AcknowledgeType
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Compression
from tests.coordinator.driver import carry_out
from tests.coordinator.purity import decided
from tests.coordinator.share_partition import given
from tests.coordinator.share_partition.given import Change

TOPIC_ID = b"t" * 16
KEY = ShareKey("group", TOPIC_ID, 0)
LOCK_MS, COLD_MS = 1_000, 3_000
MEMBERS = ("m1", "m2", "m3")
LARGEST_BATCH = 10
ENDS = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
TYPES = (AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, RENEW)


class Broken(AssertionError):
    """A violated invariant, with its name."""


def must(holds: bool, invariant: str, state: object) -> None:
    if not holds:
        raise Broken(f"{invariant}: {state}")


class Topics:
    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        topic = Topic("topic", topic_id)
        topic.partitions[0] = None  # type: ignore[assignment]
        return topic


class Lease(NamedTuple):
    member: str
    until_ms: int


class State:
    """The share coordinator: a shard over a log, which is loaded again now and then."""

    def __init__(self, settings: ShareSettings) -> None:
        self.settings = settings
        self.serde = ShareSerde(Compression.NONE)
        self.log: list[tuple[int, bytes]] = []
        self.next_offset = 0
        self.shard = ShareShard(lambda: settings, Topics())

    def take(self, result: ShareResult, now_ms: int) -> None:
        for record in result.records:
            self.log.append((self.next_offset, bytes(self.serde.batches(self.serde.encode([record], now_ms)))))
            self.next_offset += 1
        carry_out(self.shard, result)

    def load(self, now_ms: int) -> None:
        before = {key: (state.start_offset, list(state.batches)) for key, state in self.shard.states.items()}
        self.shard = ShareShard(lambda: self.settings, Topics())
        for offset, data in self.log:
            for record in self.serde.decode(memoryview(data)):
                self.shard.apply(record._replace(offset=offset))
        self.shard.activate(now_ms, self.next_offset)
        after = {key: (state.start_offset, list(state.batches)) for key, state in self.shard.states.items()}
        must(before == after, "state is the fold of records", (before, after))

    def prune(self) -> None:
        before = self.shard.redundant.before
        if before is not None:
            self.log = [entry for entry in self.log if entry[0] >= before]


class SharePartitionWorld:
    """A run of the world."""

    SLACK = LARGEST_BATCH
    """Number of records that may be acquired beyond the limit: whole batches round up."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 1_000_000
        self.limits = Limits(
            max_delivery_count=self.random.choice([2, 3, 5]),
            max_in_flight_records=self.random.choice([15, 40]),
            lock_duration_ms=LOCK_MS,
            has_dead_letters=self.random.random() < 0.5,
            redelivery_backoff_ms=self.random.choice([0, 0, 200]),
        )
        self.batches: list[tuple[int, int]] = []
        self.end = self.log_start = 0
        self.state = State(ShareSettings(self.random.choice([0, 2, 7]), COLD_MS))
        self.leader_epoch = 0
        self.is_calm = False
        self.writing: list[Change] = []
        self.acknowledged: dict[int, dict[int, AcknowledgeType]] = {}
        """The acknowledgements in each pending change, by the change's identity."""
        self.held: dict[str, list[tuple[int, int]]] = {member: [] for member in MEMBERS}
        self.leases: dict[int, Lease] = {}
        self.counts: dict[int, int] = {}
        """Deliveries under this leader, at least the durable ones."""
        self.ended: set[int] = set()
        """Records whose final state was reported as durable to a consumer, or which are finally exhausted."""
        self.doubtful: set[int] = set()
        """Records whose final state a consumer has sent, so that the coordinator may know it."""
        self.exhausted: set[int] = set()
        self.start = self.durable_start = 0
        self.state.take(self.state.shard.initialize(KEY, 1, 0, Ticket(), self.now_ms), self.now_ms)
        self.state.shard.activate(self.now_ms, 1)
        self.partition = self._lead()

    # The leader and its coordinator.

    def _lead(self) -> SharePartition:
        self.leader_epoch += 1
        if self.random.random() < 0.7:
            self.state.load(self.now_ms)
        result = self.state.shard.read(KEY, self.leader_epoch, Ticket(), self.now_ms)
        self.state.take(result, self.now_ms)
        loaded = result.replies[0].answer
        assert isinstance(loaded, ShareState)
        must(loaded.start_offset >= self.durable_start, "the start offset is monotonic", loaded)
        self._ended_survive(loaded)
        start = 0 if loaded.start_offset == NO_START_OFFSET else loaded.start_offset
        partition = given.share_partition(start, loaded.batches, self.limits)
        self.loaded = partition.in_flight_count
        """Number of records beyond the limit that a restart may load, because a start offset was not stored."""
        self.start = self.durable_start
        self.counts = {
            offset: batch.delivery_count
            for batch in loaded.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        return partition

    def _ended_survive(self, loaded: ShareState) -> None:
        survivors = set(range(max(loaded.start_offset, 0)))
        for first, last, state, _ in loaded.batches:
            if state in (*TERMINAL, ARCHIVING):
                survivors.update(range(first, last + 1))
        gone = {offset for offset in self.ended - self.exhausted if offset not in survivors}
        must(not gone, "terminal states survive a restart", gone)

    def _write(self, change: Change | None, acknowledged: dict[int, AcknowledgeType] | None = None) -> None:
        if change is None:
            return
        self.writing.append(change)
        self.acknowledged[id(change)] = acknowledged or {}
        if self.is_calm:
            self._finish(self.writing.pop(), 0.0)
        elif self.random.random() < 0.6:
            self.write_done()

    def write_done(self) -> None:
        """Completes the oldest write, makes it fail, or completes it without an answer."""
        if self.writing:
            self._finish(self.writing.pop(0), self.random.random())

    def _finish(self, change: Change, luck: float) -> None:
        acknowledged = self.acknowledged.pop(id(change))
        is_durable, is_told = luck < 0.85, luck < 0.75
        if is_durable:
            written = StateWrite(
                1, self.leader_epoch, change.start_offset, change.delivery_complete_count, change.batches
            )
            self.state.take(self.state.shard.write(KEY, written, Ticket(), self.now_ms), self.now_ms)
            self.durable_start = max(self.durable_start, change.start_offset)
            self.doubtful.update(offset for offset, kind in acknowledged.items() if kind in ENDS or kind == 0)
        self.partition.complete(change.batches, is_told, self.now_ms)
        if is_told:
            self.ended.update(offset for offset, kind in acknowledged.items() if kind == AcknowledgeType.ACCEPT)
            for offset in acknowledged:
                self.leases.pop(offset, None)

    # The log.

    def produce(self) -> None:
        if self.random.random() < 0.1:
            self.end += self.random.randint(1, 4)
        size = self.random.randint(1, LARGEST_BATCH)
        self.batches.append((self.end, self.end + size - 1))
        self.end += size

    def compact(self) -> None:
        if len(self.batches) > 2:
            self.batches.pop(self.random.randrange(len(self.batches) - 1))

    def retain(self) -> None:
        if len(self.batches) > 4:
            self.log_start = self.batches[1][0]
            self.batches = self.batches[1:]
            expiry.move_log_start(self.partition, self.log_start)

    def in_log(self) -> set[int]:
        return {offset for first, last in self.batches for offset in range(first, last + 1)}

    # Members.

    def fetch(self) -> None:
        self._fetch(self.random.choice(MEMBERS), self.random.randint(1, 15))

    def _next_offset(self, member: str) -> int | None:
        return self.partition.next_fetch_offset() if self.partition.can_acquire else None

    def _look_into(self, offset: int, read: list[FetchedBatch]) -> None:
        """Prepares the batches of a fetch before records are acquired."""

    def _fetch(self, member: str, most: int) -> list[tuple[int, int]]:
        offset = self._next_offset(member)
        if offset is None:
            return []
        if offset < self.log_start:
            expiry.move_log_start(self.partition, self.log_start)
            return []
        read = [FetchedBatch(*batch) for batch in self.batches if batch[1] >= offset][: self.random.randint(1, 4)]
        if read:
            self._look_into(offset, read)
        mode = self.random.choice([BATCH_OPTIMIZED, RECORD_LIMIT])
        acquired = acquiring.acquire(
            self.partition, AcquireRequest(member, most, self.random.randint(1, 15), mode), offset, read, self.now_ms
        )
        for first, last, count in acquired:
            for at in range(first, last + 1):
                self._delivered(member, at, count)
            self.held[member].append((first, last))
        return [(first, last) for first, last, _ in acquired]

    def _delivered(self, member: str, at: int, count: int) -> None:
        lease = self.leases.get(at)
        must(lease is None or lease.until_ms <= self.now_ms, "no record is held by two", (at, member, lease))
        must(at not in self.ended, "what has ended is not delivered", at)
        must(count > self.counts.get(at, 0), "the delivery count does not fall", (at, count, self.counts.get(at)))
        must(count <= self.limits.max_delivery_count, "the delivery count keeps its limit", (at, count))
        self.counts[at] = count
        self.leases[at] = Lease(member, self.now_ms + LOCK_MS)
        if count == self.limits.max_delivery_count:
            self.exhausted.add(at)

    def speak(self) -> None:
        """Acknowledges everything that was acquired at once, half of it, or each record; in time or late, once or
        again."""
        member = self.random.choice(MEMBERS)
        if not self.held[member]:
            return
        first, last = self.random.choice(self.held[member])
        if self.random.random() < 0.8:
            self.held[member].remove((first, last))
        if self.random.random() < 0.3:
            last = (first + last) // 2
        one_each = self.random.random() < 0.4
        types = [int(self.random.choice(TYPES)) for _ in range(last - first + 1 if one_each else 1)]
        self._say(member, first, last, types)

    def _say(self, member: str, first: int, last: int, types: list[int]) -> None:
        low = self.partition.start_offset
        acknowledged = {
            offset: AcknowledgeType(types[0] if len(types) == 1 else types[offset - first])
            for offset in range(first, last + 1)
        }
        try:
            change = given.acknowledge(
                self.partition, member, [Acknowledgement(first, last, types)], self.now_ms, decided
            )
        except KafkaError as error:
            if error.code not in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST):
                raise
            return
        for offset, kind in acknowledged.items():
            lease = self.leases.get(offset)
            if kind == RENEW and lease is not None and offset >= low:
                self.leases[offset] = lease._replace(until_ms=self.now_ms + LOCK_MS)
        self._write(change, {offset: kind for offset, kind in acknowledged.items() if kind != RENEW and offset >= low})

    def crash(self) -> None:
        member = self.random.choice(MEMBERS)
        self.held[member].clear()
        mine = {at: AcknowledgeType.RELEASE for at, lease in self.leases.items() if lease.member == member}
        self._write(given.release(self.partition, member, decided), mine)

    def wait(self) -> None:
        self.now_ms += self.random.randint(1, LOCK_MS)
        self._write(given.expire(self.partition, self.now_ms, decided))

    def bury(self) -> None:
        runs = [(run.first, run.last) for run in self.partition.to_bury()]
        if runs:
            self._write(given.buried(self.partition, runs, decided))

    # The broker.

    def restart(self) -> None:
        self.writing.clear()
        self.acknowledged.clear()
        self.leases.clear()
        for held in self.held.values():
            held.clear()
        self.partition = self._lead()
        expiry.move_log_start(self.partition, self.log_start)

    def keep_house(self) -> None:
        """Writes snapshots of cold share partitions, and removes redundant records of the state topic."""
        self.now_ms += COLD_MS
        self.state.take(self.state.shard.expire(self.now_ms), self.now_ms)
        self.state.prune()

    # What must hold.

    def check(self) -> None:
        partition = self.partition
        must(
            partition.start_offset >= self.start, "the start offset is monotonic", (partition.start_offset, self.start)
        )
        done = self.ended | self.doubtful | self.exhausted
        passed = {at for at in self.in_log() if self.start <= at < partition.start_offset} - done
        must(not passed, "at least once", passed)
        self.start = partition.start_offset
        end, complete, acquired = -1, 0, 0
        for batch in partition.cache:
            must(batch.first > end, "batches are in order and apart", partition)
            end = batch.first - 1
            for run in batch.runs:
                must(run.first == end + 1 <= run.last + 1, "batches are in order and apart", partition)
                must((run.state is ACQUIRED) == bool(run.member_id), "acquired records have a member", run)
                end = run.last
                complete += partition.cache.index.from_start(run) if run.state in TERMINAL else 0
                acquired += partition.cache.index.from_start(run) if run.state is ACQUIRED else 0
            must(batch.last == end, "batches are in order and apart", partition)
        in_order = not partition.cache.batches or end == partition.cache.last_offset <= partition.end_offset
        must(in_order, "batches are in order and apart", partition)
        must(partition.delivery_complete_count == complete, "the lag adds up", (partition, complete))
        most = max(self.limits.max_in_flight_records, self.loaded) + self.SLACK
        must(acquired <= most, "the cap of records in flight holds", acquired)

    ACTIONS: tuple[tuple[int, Callable[[SharePartitionWorld], None]], ...] = (
        (10, produce), (1, compact), (1, retain), (20, fetch), (20, speak), (2, crash), (6, wait), (6, write_done),
        (5, bury), (1, restart), (1, keep_house),
    )  # fmt: skip

    def run(self, steps: int) -> None:
        actions = self.random.choices(
            [action for _, action in self.ACTIONS], [weight for weight, _ in self.ACTIONS], k=steps
        )
        for action in actions:
            action(self)
            self.check()
        self.drain()

    def drain(self) -> None:
        """Restarts once, then runs without failures and stalls: everything in the log must reach its final state."""
        self.is_calm = True
        self.restart()
        for _ in range(20 * (len(self.batches) + 10)):
            self.bury()
            self.now_ms += LOCK_MS
            self._write(given.expire(self.partition, self.now_ms, decided))
            for member in MEMBERS[:2]:
                for first, last in self._fetch(member, 100):
                    self._say(member, first, last, [int(AcknowledgeType.ACCEPT)])
            self.check()
        left = self.in_log() - self.ended - self.doubtful - self.exhausted
        must(not left, "at least once", left)
        must(self.partition.start_offset >= self.end or not self.batches, "nothing stays behind", self.partition)
        lag = self.end - self.partition.start_offset - self.partition.delivery_complete_count
        must(lag <= 0 or not self.batches, "the lag adds up", lag)
