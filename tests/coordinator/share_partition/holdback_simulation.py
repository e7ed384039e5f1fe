"""A simulation of a share group whose records wait for their time and their key, with options that change.

Further invariants: no record is delivered before its time, one member has a key at a time, records of a key are
delivered in order, and no record is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.share_partition.acknowledge import Acknowledgement
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.holdback import Facts, HoldbackRules, hold_back
from coordinator.share_partition.request import BATCH_OPTIMIZED, RECORD_LIMIT, AcquireRequest, FetchedBatch
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, TERMINAL
from tests.coordinator.share_partition.given import acknowledge, expire, holdback_of, release
from tests.coordinator.share_partition.simulation import LARGEST_BATCH, LOCK_MS, MEMBERS, Simulation

KEYS = 6
LONGEST_DELAY_MS = 3 * LOCK_MS

BY_TIME = HoldbackRules("due", 10**9)
BY_KEY = HoldbackRules(by_key=True)
BY_BOTH = HoldbackRules("due", 10**9, True)


class HoldbackSimulation(Simulation):
    """A run of the simulation. `rules` are the options at its beginning; with `is_steady` they don't change."""

    SLACK = 3 * LARGEST_BATCH
    """Tolerance, because after a restart records are in flight again, as long as the start offset after them is not
    stored."""

    def __init__(self, seed: int, rules: HoldbackRules, *, is_steady: bool = True) -> None:
        self.rules = rules
        self.is_steady = is_steady
        self.keys: dict[int, int] = {}
        self.times: dict[int, int] = {}
        self.seen: set[int] = set()
        """Every offset that was ever delivered."""
        self.last_first: dict[int, int] = {}
        """By key, the last offset that was delivered for the first time."""
        super().__init__(seed)

    def _load(self) -> SharePartition:
        partition = super()._load()
        hold_back(partition, self.rules)
        return partition

    # The log.

    def produce(self) -> None:
        super().produce()
        for offset in range(self.batches[-1][0], self.end):
            if self.random.random() < 0.8:
                self.keys[offset] = self.random.randrange(KEYS)
            if self.random.random() < 0.2:
                self.times[offset] = self.now_ms + self.random.randint(-100, LONGEST_DELAY_MS)

    def learn(self, offset: int, read: list[FetchedBatch]) -> None:
        """Learns as many records as there is room for."""
        partition = self.partition
        assert partition.holdback is not None
        batches = holdback_of(partition).learnable(partition, read)
        if not batches:
            return
        there = [at for batch in batches for at in range(batch.first, batch.last + 1)]
        keys = {at: self.keys[at] for at in there if at in self.keys}
        times = {at: self.times[at] for at in there if at in self.times}
        places = [(batch.first, batch.last) for batch in batches]
        holdback_of(partition).learn(partition, Facts(offset, batches[-1].last, places, keys, times), self.now_ms)

    # Members.

    def fetch(self) -> None:
        member = self.random.choice(MEMBERS)
        mode = self.random.choice([BATCH_OPTIMIZED, RECORD_LIMIT])
        request = AcquireRequest(member, self.random.randint(1, 20), self.random.randint(1, 20), mode)
        for first, last, _ in self.take(request, self.random.randint(1, 4)):
            self.held[member].append((first, last))

    def take(self, request: AcquireRequest, batches: int) -> list[tuple[int, int, int]]:
        partition = self.partition
        if partition.holdback is None:
            offset = partition.next_fetch_offset() if partition.can_acquire else None
        else:
            offset = holdback_of(partition).next_offset(partition, request.member_id)
        if offset is None:
            return []
        if offset < self.log_start:
            move_log_start(partition, self.log_start)
            return []
        read = [FetchedBatch(*batch) for batch in self.batches if batch[1] >= offset][:batches]
        if not read:
            return []
        if partition.holdback is not None:
            self.learn(offset, read)
        acquired = acquire(partition, request, offset, read, self.now_ms)
        for first, last, count in acquired:
            assert read[-1].last >= last >= first >= offset
            assert 1 <= count <= self.limits.max_delivery_count
            for at in range(first, last + 1):
                self.delivered(at, count)
        assert (
            partition.holdback is None or sum(acquired_range.size for acquired_range in acquired) <= request.max_records
        )
        return [tuple(acquired_range) for acquired_range in acquired]  # type: ignore[misc]

    def delivered(self, offset: int, count: int) -> None:
        """Records a delivered offset; offsets that are gone from the log are acquired as well, and acknowledged as
        gaps."""
        assert offset not in self.done, f"{offset} was done with"
        assert self.counts.get(offset, 0) < count
        self.counts[offset] = count
        if self.is_steady and any(first <= offset <= last for first, last in self.batches):
            self.delivered_in_order(offset)
        self.seen.add(offset)

    def delivered_in_order(self, offset: int) -> None:
        if self.rules.delay_header:
            assert self.times.get(offset, 0) <= self.now_ms, f"{offset} came before its time"
        if self.rules.by_key and offset in self.keys and offset not in self.seen:
            key = self.keys[offset]
            assert self.last_first.get(key, -1) < offset, f"{offset} came after {self.last_first[key]}"
            self.last_first[key] = offset

    def configure(self) -> None:
        """Changes the group's options."""
        if not self.is_steady:
            self.rules = self.random.choice(
                [HoldbackRules(), BY_TIME, BY_KEY, BY_BOTH, HoldbackRules("other", 1, True)]
            )
            hold_back(self.partition, self.rules)

    # What must hold.

    def check(self) -> None:
        super().check()
        if self.is_steady and self.rules.by_key:
            self.check_keys()
        if self.partition.holdback is not None:
            most = 3 * (self.limits.max_in_flight_records + LARGEST_BATCH)
            assert len(holdback_of(self.partition).keys) <= most, "keys are not forgotten"

    def check_keys(self) -> None:
        """Checks that one member has a key, as far as its records are still in the log."""
        there = {at for first, last in self.batches for at in range(first, last + 1)}
        holders: dict[int, str] = {}
        for batch in self.partition.cache:
            for run in batch.runs:
                for offset in range(max(run.first, self.partition.start_offset), run.last + 1):
                    if run.state is ACQUIRED and offset in there and offset in self.keys:
                        key = self.keys[offset]
                        assert holders.setdefault(key, run.member_id) == run.member_id, f"{key} is with two members"

    def drain(self) -> None:
        for member in MEMBERS:
            self.held[member].clear()
            change = release(self.partition, member)
            if change is not None:
                self.writing.append(change)
        for turn in range(200 * (len(self.batches) + 10)):
            while self.writing:
                self.partition.complete(self.writing.pop(0).batches, True, self.now_ms)
            self.now_ms += LOCK_MS
            if (change := expire(self.partition, self.now_ms)) is not None:
                self.writing.append(change)
                continue
            member = MEMBERS[turn % 2]
            acquired = self.take(AcquireRequest(member, 1000, 1000), 1 + turn % 3)
            for first, last, _ in acquired:
                change = acknowledge(self.partition, member, [Acknowledgement(first, last, [1])], self.now_ms)
                if change is not None:
                    self.writing.append(change)
            self.check()
            if self.is_drained():
                break
        left = [batch for batch in self.partition.cache.batches if batch.last >= self.partition.start_offset]
        assert not left, f"left behind: {left}"
        there = {at for first, last in self.batches for at in range(first, last + 1)}
        assert there <= self.seen, f"never delivered: {sorted(there - self.seen)}"

    def is_drained(self) -> bool:
        partition = self.partition
        end = self.batches[-1][1] + 1 if self.batches else 0
        return partition.start_offset >= end and not any(
            run.state not in TERMINAL and run.last >= partition.start_offset
            for batch in partition.cache
            for run in batch.runs
        )


def own(action: Callable[[Simulation], None]) -> Callable[[Simulation], None]:
    """Returns the action for the present simulation."""
    return lambda simulation: getattr(simulation, action.__name__)()


HoldbackSimulation.ACTIONS = (
    *((weight, own(action)) for weight, action in Simulation.ACTIONS),
    (2, lambda simulation: simulation.configure()),  # type: ignore[attr-defined]
)
