"""Tests that the cost of operations on a share partition is proportional to the touched records.

Each case is built with one size and with twice the size, and the executed lines of Python are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from broker.share.hosted import without
from coordinator.share.batches import StateBatch, combine
from coordinator.share_partition.acknowledge import Acknowledgement
from coordinator.share_partition.description import LogAndMembers, describe
from coordinator.share_partition.expiry import archive_aborted, move_log_start
from coordinator.share_partition.holdback import Facts, HoldbackRules, hold_back
from coordinator.share_partition.request import RECORD_LIMIT, Acquired
from coordinator.share_partition.run import Limits
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ARCHIVED, AVAILABLE
from protocol.errors import KafkaError
from tests.coordinator.share_partition.given import (
    ACCEPT,
    NOW_MS,
    REJECT,
    RELEASE,
    RENEW,
    Change,
    acknowledge,
    buried,
    expire,
    fetch,
    release,
    say,
    share_partition,
)  # fmt: skip
from tests.counted_work import lines_run

pytestmark = pytest.mark.source_only  # lines of compiled modules are not counted

SIZE = 300
LATER_MS = NOW_MS + 60_000
PROPORTIONAL = 2.4
"""Factor of work that is allowed for twice the size: n log n has 2.2 here, and n squared 4."""
CONSTANT = 1.3
MOST_LINES = 125
"""Maximum number of lines for a record that is acknowledged differently from its neighbours: a thousand of them are
changed in one turn of the event loop."""

Work = Callable[[], object]
Case = Callable[[int], Work]

LIMITS = Limits(max_in_flight_records=1 << 20, max_delivery_count=5)
LETTERS = LIMITS._replace(has_dead_letters=True)


def acquired(size: int, limits: Limits = LIMITS) -> SharePartition:
    """Returns a batch with this number of records, which a member has acquired."""
    partition = share_partition(limits=limits)
    fetch(partition, "m", (0, size - 1))
    return partition


def alternating(size: int, *types: int) -> list[int]:
    return [types[offset % len(types)] for offset in range(size)]


def apart(size: int, *types: int, limits: Limits = LIMITS) -> SharePartition:
    """Returns the batch after an acknowledgement with alternating types."""
    partition = acquired(size, limits)
    change = say(partition, "m", 0, size - 1, *alternating(size, *types))
    assert change is not None
    partition.complete(change.batches, True, NOW_MS)
    return partition


def one_by_one(size: int, member: Callable[[int], str] = lambda offset: "m") -> SharePartition:
    """Returns a batch whose records were acquired one by one, each at another time."""
    partition = apart(size, RELEASE)
    for offset in range(size):
        fetch(partition, member(offset), (0, size - 1), max_records=1, mode=RECORD_LIMIT, now_ms=NOW_MS + offset)
    return partition


def acknowledged(partition: SharePartition, size: int, *types: int) -> Change:
    change = say(partition, "m", 0, size - 1, *alternating(size, *types))
    assert change is not None
    return change


def acknowledge_by_types(size: int) -> Work:
    partition, types = acquired(size), alternating(size, ACCEPT, RELEASE)
    return lambda: say(partition, "m", 0, size - 1, *types)


def acknowledge_by_batches(size: int) -> Work:
    partition = acquired(size)
    singles = [Acknowledgement(offset, offset, [ACCEPT]) for offset in range(size)]
    return lambda: acknowledge(partition, "m", singles, NOW_MS)


def renew(size: int) -> Work:
    partition, types = acquired(size), alternating(size, RENEW, ACCEPT)
    return lambda: say(partition, "m", 0, size - 1, *types)


def refuse(size: int) -> Work:
    """Acknowledges records of which all but the last belong to the member: nothing is acknowledged."""
    partition = acquired(size)
    change = say(partition, "m", size - 1, size - 1, ACCEPT)
    assert change is not None
    types = alternating(size, ACCEPT, RELEASE)

    def work() -> None:
        with suppress(KafkaError):
            say(partition, "m", 0, size - 1, *types)

    return work


def commit(size: int) -> Work:
    partition = acquired(size)
    change = acknowledged(partition, size, RELEASE, ACCEPT)
    return lambda: partition.complete(change.batches, True, NOW_MS)


def undo(size: int) -> Work:
    partition = acquired(size)
    change = acknowledged(partition, size, RELEASE, ACCEPT)
    return lambda: partition.complete(change.batches, False, NOW_MS)


def delay(size: int) -> Work:
    partition = acquired(size, LIMITS._replace(redelivery_backoff_ms=100))
    change = acknowledged(partition, size, RELEASE, ACCEPT)
    return lambda: partition.complete(change.batches, True, NOW_MS)


def expire_locks(size: int) -> Work:
    partition = one_by_one(size)
    return lambda: expire(partition, LATER_MS)


def expire_delays(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT, limits=LIMITS._replace(redelivery_backoff_ms=100))
    return lambda: expire(partition, LATER_MS)


def release_all(size: int) -> Work:
    partition = one_by_one(size)
    return lambda: release(partition, "m")


def release_after_another(size: int) -> Work:
    """Each of the members has one record, and all of them leave."""
    partition = one_by_one(size, str)
    return lambda: [release(partition, str(offset)) for offset in range(size)]


def acquire_again(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT)
    return lambda: fetch(partition, "m", (0, size - 1), mode=RECORD_LIMIT)


def acquire_throttled(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT)
    for _ in range(2):
        fetch(partition, "m", (0, size - 1))
        change = release(partition, "m")
        assert change is not None
        partition.complete(change.batches, True, NOW_MS)
    return lambda: fetch(partition, "m", (0, size - 1))


def acquire_batches(size: int) -> Work:
    partition = share_partition(limits=LIMITS)
    return lambda: fetch(partition, "m", *((offset, offset) for offset in range(size)), batch_size=1)


def acquire_holes(size: int) -> Work:
    """Loads a stored state without every second batch of the log."""
    stored = [StateBatch(2 * offset + 1, 2 * offset + 1, ARCHIVED, 1) for offset in range(size)]
    partition = share_partition(batches=stored, limits=LIMITS)
    log = [(offset, offset) for offset in range(2 * size)]
    return lambda: fetch(partition, "m", *log)


def load(size: int) -> Work:
    stored = [StateBatch(offset, offset, offset % 2 * ARCHIVED, 1) for offset in range(size)]
    return lambda: share_partition(batches=stored, limits=LIMITS)


def move_start(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT)
    return lambda: move_log_start(partition, size - 1)


def archive_batches(size: int) -> Work:
    partition = acquired(2 * size)
    aborted = [(2 * offset, 2 * offset) for offset in range(size)]
    return lambda: archive_aborted(partition, aborted)


def leave_out(size: int) -> Work:
    return lambda: without([Acquired(0, 2 * size, 1)], [(2 * offset, 2 * offset) for offset in range(size)])


def bury(size: int) -> Work:
    partition = apart(size, REJECT, ACCEPT, limits=LETTERS)
    return lambda: buried(partition, [(run.first, run.last) for run in partition.to_bury()])


def by_key(size: int) -> SharePartition:
    """Returns learned records, each with its own key."""
    partition = share_partition(limits=LIMITS)
    hold_back(partition, HoldbackRules(by_key=True))
    learn(partition, size, keys=True)
    return partition


def learn(partition: SharePartition, size: int, *, keys: bool) -> None:
    assert partition.holdback is not None
    facts = Facts(
        0,
        size - 1,
        [(offset, offset) for offset in range(size)],
        {offset: offset for offset in range(size)} if keys else {},
        {} if keys else {offset: NOW_MS + 100 * offset for offset in range(size)},
    )
    partition.holdback.learn(partition, facts, NOW_MS)  # type: ignore[attr-defined]


def learn_times(size: int) -> Work:
    partition = share_partition(limits=LIMITS)
    hold_back(partition, HoldbackRules("due", 1 << 30))
    return lambda: learn(partition, size, keys=False)


def acquire_by_key(size: int) -> Work:
    partition = by_key(size)
    return lambda: fetch(partition, "m", (0, size - 1))


def acquire_by_key_again(size: int) -> Work:
    partition = by_key(size)
    fetch(partition, "m", (0, size - 1))
    change = acknowledged(partition, size, RELEASE, ACCEPT)
    partition.complete(change.batches, True, NOW_MS)
    return lambda: fetch(partition, "m", (0, size - 1), offset=0)


def write_state(size: int) -> Work:
    so_far = [StateBatch(offset, offset, AVAILABLE, offset % 2) for offset in range(size)]
    new = [StateBatch(offset, offset, ARCHIVED, 2 + offset % 2) for offset in range(size)]
    return lambda: combine(so_far, new, 0)


WHOLE: Sequence[Case] = (
    acknowledge_by_types, acknowledge_by_batches, renew, refuse, commit, undo, delay, expire_locks,
    expire_delays, release_all, release_after_another, acquire_again, acquire_throttled, acquire_batches, acquire_holes,
    load, move_start, archive_batches, leave_out, bury, learn_times, acquire_by_key, acquire_by_key_again, write_state,
)  # fmt: skip


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.__name__)
def test_work_is_in_proportion_to_what_is_touched(case: Case) -> None:
    assert lines_run(case(2 * SIZE)) < PROPORTIONAL * lines_run(case(SIZE))


def find_the_last_available(size: int) -> Work:
    partition = one_by_one(size)
    change = say(partition, "m", size - 1, size - 1, RELEASE)
    assert change is not None
    partition.complete(change.batches, True, NOW_MS)
    return partition.next_fetch_offset


def acknowledge_one(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT)
    fetch(partition, "m", (0, size - 1))
    middle = size // 4 * 2  # released before, and acquired again

    def work() -> None:
        change = say(partition, "m", middle, middle, RELEASE)
        assert change is not None
        partition.complete(change.batches, True, NOW_MS)

    return work


def expire_one(size: int) -> Work:
    partition = one_by_one(size)
    return lambda: expire(partition, partition.next_deadline_ms() or 0)


def release_one(size: int) -> Work:
    partition = one_by_one(size, lambda offset: "m2" if offset == size // 2 else "m")
    return lambda: release(partition, "m2")


def bury_one(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT, limits=LETTERS)
    fetch(partition, "m", (0, size - 1))
    change = say(partition, "m", size // 4 * 2, size // 4 * 2, REJECT)
    assert change is not None
    partition.complete(change.batches, True, NOW_MS)
    return lambda: buried(partition, [(run.first, run.last) for run in partition.to_bury()])


def write_one_state(size: int) -> Work:
    so_far = [StateBatch(offset, offset, AVAILABLE, offset % 2) for offset in range(size)]
    return lambda: combine(so_far, [StateBatch(size // 2, size // 2, ARCHIVED, 3)], 0)


def describe_one_page(size: int) -> Work:
    partition = apart(size, RELEASE, ACCEPT)
    around = LogAndMembers(size, size, 1, 0)
    return lambda: describe(partition, around, size // 2, 20)


ONE: Sequence[Case] = (
    find_the_last_available, acknowledge_one, expire_one, release_one, bury_one, write_one_state, describe_one_page,
)  # fmt: skip


@pytest.mark.parametrize("case", ONE, ids=lambda case: case.__name__)
def test_what_touches_one_record_costs_the_same_however_many_there_are(case: Case) -> None:
    assert lines_run(case(4 * SIZE)) < CONSTANT * lines_run(case(SIZE))


def test_acknowledging_each_record_differently_costs_little_for_each() -> None:
    size = 6 * SIZE
    partition = acquired(size)
    work = lines_run(lambda: partition.complete(acknowledged(partition, size, ACCEPT, RELEASE).batches, True, NOW_MS))
    assert work < MOST_LINES * size
