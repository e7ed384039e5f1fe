"""Sends random invalid requests to a share partition, from a seed: it rejects them, and its state stays valid."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from broker.share.acknowledging import AcknowledgeRules, check
from coordinator.share_partition.acknowledge import Acknowledgement
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.expiry import move_log_start
from coordinator.share_partition.request import BATCH_OPTIMIZED, RECORD_LIMIT, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Limits
from coordinator.share_partition.states import ACQUIRED
from protocol.errors import KafkaError
from protocol.messages.share_acknowledge import AcknowledgementBatch
from tests.coordinator.decisions import decisions
from tests.coordinator.purity import decided
from tests.coordinator.share_partition.given import (
    NOW_MS,
    Change,
    acknowledge,
    acknowledge_part,
    buried,
    expire,
    release,
    share_partition,
    withdraw_part,
    write_part,
)

SEEDS, STEPS = range(60), 150
LARGEST = (1 << 63) - 1
EXTREMES = (0, 1, -1, -LARGEST - 1, LARGEST)
MEMBERS = ("m1", "m2", "nobody", "")
LOCK_MS = 1_000
MAX_IN_FLIGHT = 40
LARGEST_BATCH = 9


class Hunt:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = NOW_MS
        self.partition = share_partition(
            limits=Limits(max_delivery_count=3, max_in_flight_records=MAX_IN_FLIGHT, lock_duration_ms=LOCK_MS)
        )
        self.end = 0
        """The end of the log."""
        self.writing: list[Change] = []
        self.refused = self.taken = 0
        self.accepted: set[str] = set()

    def offset(self) -> int:
        """Returns an offset that is mostly in flight, or next to such an offset."""
        if self.random.random() < 0.2:
            return self.random.choice(EXTREMES)
        return self.random.randint(self.partition.start_offset - 2, self.partition.end_offset + 3)

    def step(self) -> None:
        ways = (
            self.fetch,
            self.fetch,
            self.say,
            self.say,
            self.say,
            self.say_in_parts,
            self.let_go,
            self.bury,
            self.let_time_pass,
            self.write,
            self.retain,
        )
        try:
            self.random.choice(ways)()
        except KafkaError:
            self.refused += 1
        self.look()

    def fetch(self) -> None:
        at = self.partition.next_fetch_offset()
        batches = []
        for _ in range(self.random.randint(0, 3)):
            last = at + self.random.randrange(LARGEST_BATCH)
            batches.append(FetchedBatch(at, last))
            at = last + 1
        self.end = max(self.end, at)
        counts = (*EXTREMES, 3, 500)
        request = AcquireRequest(
            self.random.choice(MEMBERS), self.random.choice(counts), self.random.choice(counts),
            self.random.choice((BATCH_OPTIMIZED, RECORD_LIMIT)),
        )  # fmt: skip
        if request.max_records <= 0:
            return  # such a fetch does not get here: ShareFetch takes it for one without records
        acquire(self.partition, request, self.partition.next_fetch_offset(), batches, self.now_ms)

    def say(self) -> None:
        change = acknowledge(self.partition, *self.said(), self.now_ms, decided)
        self.taken += 1
        self.accepted.add("acknowledge.acknowledge")
        self.keep(change)

    def say_in_parts(self) -> None:
        """Writes the reserved part of an acknowledgement, or undoes it because the rest is rejected."""
        part = acknowledge_part(self.partition, *self.said(), is_first=False, now_ms=self.now_ms, decide=decided)
        if self.random.random() < 0.5:
            self.accepted.add("acknowledge.withdraw")
            withdraw_part(self.partition, part.record, decided)
        elif part.record:
            self.accepted.add("acknowledge.write")
            self.keep(write_part(self.partition, part.record, decided))

    def said(self) -> tuple[str, list[Acknowledgement]]:
        """The member and the records of an acknowledgement."""
        raw = [
            AcknowledgementBatch(
                first_offset=first,
                last_offset=first + self.random.randrange(6) if self.random.random() < 0.8 else self.offset(),
                acknowledge_types=[self.random.randint(-1, 6) for _ in range(self.random.choice((0, 1, 1, 1, 2)))],
            )
            for first in (self.offset() for _ in range(self.random.choice((1, 1, 2))))
        ]
        member = self.random.choice(MEMBERS)
        runs = [run for batch in self.partition.cache.batches for run in batch.runs if run.state is ACQUIRED]
        if runs and self.random.random() < 0.5:
            run = self.random.choice(runs)
            member = run.member_id
            raw = [AcknowledgementBatch(first_offset=run.first, last_offset=run.last, acknowledge_types=[1])]
        return member, check(raw, AcknowledgeRules(2, self.random.random() < 0.2))

    def let_go(self) -> None:
        self.accepted.add("expiry.release")
        self.keep(release(self.partition, self.random.choice(MEMBERS), decided))

    def bury(self) -> None:
        runs = [(run.first, run.last) for run in self.partition.to_bury()]
        self.accepted.add("expiry.buried")
        self.keep(buried(self.partition, runs, decided))

    def let_time_pass(self) -> None:
        self.now_ms += self.random.choice((1, LOCK_MS // 2, LOCK_MS, 10 * LOCK_MS))
        self.keep(expire(self.partition, self.now_ms, decided))

    def retain(self) -> None:
        if self.random.random() < 0.1:
            move_log_start(self.partition, min(self.offset(), self.end))

    def keep(self, change: Change | None) -> None:
        if change is not None:
            self.writing.append(change)

    def write(self) -> None:
        if self.writing:
            self.partition.complete(self.writing.pop(0).batches, self.random.random() < 0.8, self.now_ms)

    def look(self) -> None:
        """Checks the invariants."""
        partition = self.partition
        assert partition.is_active
        runs = [run for batch in partition.cache.batches for run in batch.runs]
        offsets = [(run.first, run.last) for run in runs]
        assert all(first <= last for first, last in offsets)
        assert all(before[1] < after[0] for before, after in itertools.pairwise(offsets)), offsets
        assert partition.in_flight_count <= MAX_IN_FLIGHT + 2 * LARGEST_BATCH
        assert partition.start_offset <= partition.next_fetch_offset() <= partition.end_offset + 1
        assert all(run.delivery_count <= 3 for run in runs), runs
        assert {run.member_id for run in runs if run.state is ACQUIRED} <= set(MEMBERS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_share_partition_takes_or_refuses_whatever_is_said(seed: int) -> None:
    hunt = Hunt(seed)
    for _ in range(STEPS):
        hunt.step()
    assert hunt.refused
    assert hunt.taken


def test_each_decision_is_made_twice_and_accepted() -> None:
    accepted: set[str] = set()
    for seed in SEEDS:
        hunt = Hunt(seed)
        for _ in range(STEPS):
            hunt.step()
        accepted |= hunt.accepted
        if accepted == decisions("share_partition"):
            return
    raise AssertionError(f"never accepted: {sorted(decisions('share_partition') - accepted)}")
