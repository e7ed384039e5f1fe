"""The world of a share group whose records wait for their time and their key, with options that change.

Further invariants: no record is delivered before its time, one member has a key at a time, records of a key are
delivered in their order, and every record is delivered.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.share_partition.holdback import Facts, HoldbackRules, hold_back
from coordinator.share_partition.request import FetchedBatch
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED
from tests.coordinator.share_partition.given import holdback_of
from tests.coordinator.share_partition.world import LARGEST_BATCH, LOCK_MS, SharePartitionWorld, must

KEYS = 6
LONGEST_DELAY_MS = 3 * LOCK_MS

BY_TIME = HoldbackRules("due", 10**9)
BY_KEY = HoldbackRules(by_key=True)
BY_BOTH = HoldbackRules("due", 10**9, True)


class HoldbackWorld(SharePartitionWorld):
    """A run of the world. `rules` are the options at its beginning; with `is_steady` they don't change."""

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

    def _lead(self) -> SharePartition:
        partition = super()._lead()
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

    def _look_into(self, offset: int, read: list[FetchedBatch]) -> None:
        """Learns as many records as there is room for."""
        partition = self.partition
        if partition.holdback is None:
            return
        batches = holdback_of(partition).learnable(partition, read)
        if not batches:
            return
        there = [at for batch in batches for at in range(batch.first, batch.last + 1)]
        keys = {at: self.keys[at] for at in there if at in self.keys}
        times = {at: self.times[at] for at in there if at in self.times}
        places = [(batch.first, batch.last) for batch in batches]
        holdback_of(partition).learn(partition, Facts(offset, batches[-1].last, places, keys, times), self.now_ms)

    # Members.

    def _next_offset(self, member: str) -> int | None:
        if self.partition.holdback is None:
            return super()._next_offset(member)
        return holdback_of(self.partition).next_offset(self.partition, member)

    def _delivered(self, member: str, at: int, count: int) -> None:
        """Records a delivered offset. Offsets that are gone from the log are acquired as well, and acknowledged as
        gaps."""
        super()._delivered(member, at, count)
        if self.is_steady and at in self.in_log():
            self._delivered_in_order(at)
        self.seen.add(at)

    def _delivered_in_order(self, at: int) -> None:
        if self.rules.delay_header:
            must(self.times.get(at, 0) <= self.now_ms, "no record comes before its time", at)
        if self.rules.by_key and at in self.keys and at not in self.seen:
            key = self.keys[at]
            must(self.last_first.get(key, -1) < at, "records of a key come in order", (at, self.last_first.get(key)))
            self.last_first[key] = at

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
            self._check_keys()
        if self.partition.holdback is not None:
            most = 3 * (self.limits.max_in_flight_records + LARGEST_BATCH)
            must(len(holdback_of(self.partition).keys) <= most, "keys are forgotten", self.partition)

    def _check_keys(self) -> None:
        """Checks that one member has a key, as far as its records are still in the log."""
        there = self.in_log()
        holders: dict[int, str] = {}
        for batch in self.partition.cache:
            for run in batch.runs:
                for offset in range(max(run.first, self.partition.start_offset), run.last + 1):
                    if run.state is ACQUIRED and offset in there and offset in self.keys:
                        key = self.keys[offset]
                        holder = holders.setdefault(key, run.member_id)
                        must(holder == run.member_id, "a key is with one member", key)

    def drain(self) -> None:
        super().drain()
        must(self.in_log() <= self.seen, "no record is forgotten", self.in_log() - self.seen)


def own(action: Callable[[SharePartitionWorld], None]) -> Callable[[SharePartitionWorld], None]:
    """Returns the action for the current world."""
    return lambda world: getattr(world, action.__name__)()


HoldbackWorld.ACTIONS = (
    *((weight, own(action)) for weight, action in SharePartitionWorld.ACTIONS),
    (2, lambda world: world.configure()),  # type: ignore[attr-defined]
)
