"""Share partitions for tests, and their description."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from coordinator.engine.result import Result, Ticket
from coordinator.share.batches import StateBatch
from coordinator.share_partition import acknowledge as acknowledging
from coordinator.share_partition import expiry
from coordinator.share_partition.acknowledge import Acknowledgement, ReservedPart
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.holdback import Holdback
from coordinator.share_partition.request import BATCH_OPTIMIZED, Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Limits, StateRecord
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import AcknowledgeType
from tests.coordinator.driver import carry_out

NOW_MS = 1_000_000
ALL = 1 << 30

GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType

Decision = Callable[[], Result[StateRecord]]
Decide = Callable[[SharePartition, Decision], Result[StateRecord]]


class Change(NamedTuple):
    """The records of a decision."""

    start_offset: int
    delivery_complete_count: int
    batches: StateRecord


def share_partition(
    start: int = 0,
    batches: Sequence[StateBatch] = (),
    limits: Limits = Limits(),  # noqa: B008 (immutable)
) -> SharePartition:
    """Returns a share partition that has just been loaded."""
    partition = SharePartition(limits, lambda: None)
    partition.begin_at(start)
    partition.apply(batches)
    partition.activate()
    return partition


def once(partition: SharePartition, decision: Decision) -> Result[StateRecord]:
    return decision()


def changed(partition: SharePartition, decision: Decision, decide: Decide = once) -> tuple[Change | None, object]:
    """Decides and applies; returns the records to write, and the answer."""
    result = decide(partition, decision)
    carry_out(partition, result)
    answer = result.replies[0].answer if result.replies else None
    if not result.records:
        return None, answer
    return Change(partition.start_offset, partition.delivery_complete_count, result.records[0]), answer


def acknowledge(
    partition: SharePartition,
    member: str,
    acknowledgements: Sequence[Acknowledgement],
    now_ms: int = NOW_MS,
    decide: Decide = once,
) -> Change | None:
    """Acknowledges; returns the records to write."""
    decision = partial(acknowledging.acknowledge, partition, member, acknowledgements, True, Ticket(), now_ms)
    change, part = changed(partition, decision, decide)
    assert part is None
    return change


def acknowledge_part(
    partition: SharePartition,
    member: str,
    acknowledgements: Sequence[Acknowledgement],
    *,
    is_first: bool,
    now_ms: int = NOW_MS,
    decide: Decide = once,
) -> ReservedPart:
    """Acknowledges a part of a long acknowledgement."""
    decision = partial(acknowledging.acknowledge, partition, member, acknowledgements, is_first, Ticket(), now_ms)
    change, part = changed(partition, decision, decide)
    assert change is None
    assert isinstance(part, ReservedPart)
    return part


def write_part(partition: SharePartition, record: StateRecord, decide: Decide = once) -> Change | None:
    """Writes a part of a long acknowledgement."""
    return changed(partition, partial(acknowledging.write, record, Ticket(), NOW_MS), decide)[0]


def withdraw_part(partition: SharePartition, record: StateRecord, decide: Decide = once) -> None:
    """Undoes a part of a long acknowledgement."""
    changed(partition, partial(acknowledging.withdraw, partition, (record,), Ticket(), NOW_MS), decide)


def release(partition: SharePartition, member: str, decide: Decide = once) -> Change | None:
    return changed(partition, partial(expiry.release, partition, member, Ticket(), NOW_MS), decide)[0]


def expire(partition: SharePartition, now_ms: int, decide: Decide = once) -> Change | None:
    """Expires what is due; returns the records of the last expired locks."""
    change = None
    while (due_ms := partition.next_deadline_ms()) is not None and due_ms <= now_ms:
        change = changed(partition, partial(partition.expire, now_ms), decide)[0] or change
    return change


def buried(partition: SharePartition, ranges: Iterable[tuple[int, int]], decide: Decide = once) -> Change | None:
    return changed(partition, partial(expiry.buried, partition, ranges, Ticket(), NOW_MS), decide)[0]


def holdback_of(partition: SharePartition) -> Holdback:
    """Returns the holdback of the partition."""
    assert isinstance(partition.holdback, Holdback)
    return partition.holdback


def fetch(
    partition: SharePartition,
    member: str,
    *batches: tuple[int, int],
    offset: int | None = None,
    max_records: int = ALL,
    batch_size: int = ALL,
    mode: int = BATCH_OPTIMIZED,
    now_ms: int = NOW_MS,
) -> list[tuple[int, int, int]]:
    """Acquires from the log's batches; returns the acquired ranges as (first, last, delivery count)."""
    at = partition.next_fetch_offset() if offset is None else offset
    request = AcquireRequest(member, max_records, batch_size, mode)
    return [
        (acquired_range.first, acquired_range.last, acquired_range.delivery_count)
        for acquired_range in acquire(
            partition, request, at, [FetchedBatch(*acquired_range) for acquired_range in batches], now_ms
        )
    ]


def say(
    partition: SharePartition, member: str, first: int, last: int, *types: int, now_ms: int = NOW_MS
) -> Change | None:
    """Acknowledges; returns the records to write."""
    return acknowledge(partition, member, [Acknowledgement(first, last, types)], now_ms)


def write(partition: SharePartition, change: Change | None, now_ms: int = NOW_MS) -> list[tuple[int, int, int, int]]:
    """Completes the write; returns its records."""
    assert change is not None
    partition.complete(change.batches, True, now_ms)
    return [tuple(batch) for batch in change.batches]  # type: ignore[misc]


def fail(partition: SharePartition, change: Change | None, now_ms: int = NOW_MS) -> None:
    """Makes the write fail."""
    assert change is not None
    partition.complete(change.batches, False, now_ms)


def states(partition: SharePartition) -> list[str]:
    """Returns the records in flight, with one line for each run."""
    return [
        f"{run.first}-{run.last} {run.state.name.lower()} {run.delivery_count}"
        + (f" {run.member_id}" if run.member_id else "")
        + ("…" if run.change is not None else "")
        for batch in partition.cache
        for run in batch.runs
    ]


def acquired(*ranges: tuple[int, int, int]) -> list[Acquired]:
    return [Acquired(*one) for one in ranges]
