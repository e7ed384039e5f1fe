"""Share partitions as tests want them, and how they look."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.share.batches import StateBatch
from coordinator.share_partition.acknowledge import Acknowledgement, acknowledge
from coordinator.share_partition.acquire import acquire
from coordinator.share_partition.holdback import Holdback
from coordinator.share_partition.request import BATCH_OPTIMIZED, Acquired, AcquireRequest, FetchedBatch
from coordinator.share_partition.run import Change, Limits
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import AcknowledgeType, Lifecycle

NOW_MS = 1_000_000
ALL = 1 << 30

GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def share_partition(
    start: int = 0,
    batches: Sequence[StateBatch] = (),
    limits: Limits = Limits(),  # noqa: B008 (immutable)
) -> SharePartition:
    """One that has just been loaded."""
    partition = SharePartition(limits)
    partition.enter(Lifecycle.INITIALIZING)
    partition.load(start, batches)
    return partition


def holdback_of(partition: SharePartition) -> Holdback:
    """Returns what holds the partition's records back."""
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
    """Acquires of the log's batches; what was acquired, as (first, last, delivery count)."""
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
    """Acknowledges; what is to be written."""
    return acknowledge(partition, member, [Acknowledgement(first, last, types)], now_ms)


def write(partition: SharePartition, change: Change | None, now_ms: int = NOW_MS) -> list[tuple[int, int, int, int]]:
    """The write succeeds; what it had."""
    assert change is not None
    partition.complete(change, True, now_ms)
    return [tuple(batch) for batch in change.batches]  # type: ignore[misc]


def fail(partition: SharePartition, change: Change | None, now_ms: int = NOW_MS) -> None:
    """The write fails."""
    assert change is not None
    partition.complete(change, False, now_ms)


def states(partition: SharePartition) -> list[str]:
    """Returns the records in flight, one line for each run."""
    return [
        f"{run.first}-{run.last} {run.state.name.lower()} {run.delivery_count}"
        + (f" {run.member_id}" if run.member_id else "")
        + ("…" if run.change is not None else "")
        for batch in partition.cache
        for run in batch.runs
    ]


def acquired(*ranges: tuple[int, int, int]) -> list[Acquired]:
    return [Acquired(*one) for one in ranges]
