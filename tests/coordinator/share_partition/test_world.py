"""Plants faults in the world: each is detected by the invariant that it violates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from coordinator.share import redundant
from coordinator.share.shard import ShareShard, StateWrite
from coordinator.share_partition import acknowledge, acquire, share_partition
from coordinator.share_partition.run import Limits, Run
from coordinator.share_partition.run_index import RunIndex, RunsByKey
from coordinator.share_partition.share_partition import SharePartition
from coordinator.share_partition.states import ACQUIRED, AVAILABLE, TERMINAL, RecordState
from tests.coordinator.share_partition.world import LOCK_MS, Broken, SharePartitionWorld, State

STEPS = 250
SEEDS_OF_A_FAULT = 60

Patch = pytest.MonkeyPatch


def start_passes_what_is_acquired(patch: Patch) -> None:
    patch.setattr(share_partition, "TERMINAL", TERMINAL | {ACQUIRED})


def locks_run_out_early(patch: Patch) -> None:
    real = RunsByKey.up_to
    patch.setattr(RunsByKey, "up_to", lambda self, now_ms: real(self, now_ms + LOCK_MS // 2))
    soon = SharePartition.next_deadline_ms
    patch.setattr(SharePartition, "next_deadline_ms", lambda self: (soon(self) or 1 << 62) - LOCK_MS // 2)


def deliveries_have_no_end(patch: Patch) -> None:
    def settled(next_state: RecordState, delivery_count: int, limits: Limits) -> RecordState:
        return next_state

    for module in (share_partition, acknowledge):
        patch.setattr(module, "settled", settled)


def a_release_is_no_delivery(patch: Patch) -> None:
    real = Run.begin

    def begin(self: Run, state: RecordState, change: object) -> None:
        real(self, state, change)  # type: ignore[arg-type]
        if state is AVAILABLE:
            self.delivery_count -= 1

    patch.setattr(Run, "begin", begin)


def the_last_update_is_not_loaded(patch: Patch) -> None:
    real = State.load

    def load(self: State, now_ms: int) -> None:
        self.log = self.log[:-1] if len(self.log) > 3 else self.log
        self.shard.states.clear()
        real(self, now_ms)

    patch.setattr(State, "load", load)


def what_ended_is_not_written(patch: Patch) -> None:
    real = ShareShard.write

    def write(self: ShareShard, key: object, written: StateWrite, *rest: object) -> object:
        return real(self, key, written._replace(start_offset=0, batches=()), *rest)  # type: ignore[arg-type]

    patch.setattr(ShareShard, "write", write)


def there_is_always_room(patch: Patch) -> None:
    def room(self: acquire.Acquisition, fetch_offset: int) -> int:
        self.limit = self.request.max_records
        return self.fetched[-1].last

    patch.setattr(acquire.Acquisition, "_room", room)
    patch.setattr(SharePartition, "can_acquire", property(lambda self: True))


def counts_go_below_the_start(patch: Patch) -> None:
    patch.setattr(RunIndex, "pass_over", lambda self, run, offset: None)


def too_much_is_pruned(patch: Patch) -> None:
    patch.setattr(redundant.Redundant, "before", property(lambda self: 1 << 60))


def a_failed_write_is_not_undone(patch: Patch) -> None:
    patch.setattr(Run, "undo", lambda self, limits, now_ms: self.commit())


def a_cut_is_off_by_one(patch: Patch) -> None:
    real = Run.split

    def split(self: Run, offsets: Sequence[int]) -> list[Run]:
        rest = real(self, offsets)
        self.last += 1
        return rest

    patch.setattr(Run, "split", split)


def a_start_is_taken_back(patch: Patch) -> None:
    real = SharePartition.complete

    def complete(self: SharePartition, *arguments: object) -> bool:
        self.cache.index.start_offset = max(self.start_offset - 1, 0)
        return real(self, *arguments)  # type: ignore[arg-type]

    patch.setattr(SharePartition, "complete", complete)


FAULTS: dict[str, tuple[Callable[[Patch], None], ...]] = {
    "at least once": (start_passes_what_is_acquired, a_failed_write_is_not_undone),
    "no record is held by two": (locks_run_out_early,),
    "the delivery count keeps its limit": (deliveries_have_no_end,),
    "the delivery count does not fall": (a_release_is_no_delivery,),
    "terminal states survive a restart": (what_ended_is_not_written,),
    "state is the fold of records": (too_much_is_pruned, the_last_update_is_not_loaded),
    "the cap of records in flight holds": (there_is_always_room,),
    "the lag adds up": (counts_go_below_the_start,),
    "the start offset is monotonic": (a_start_is_taken_back,),
    "batches are in order and apart": (a_cut_is_off_by_one,),
}


@pytest.mark.source_only
@pytest.mark.parametrize(("invariant", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults])
def test_a_fault_is_found(monkeypatch: Patch, invariant: str, fault: Callable[[Patch], None]) -> None:
    fault(monkeypatch)
    assert any(broken == invariant for broken in found_over_seeds())


def found_over_seeds() -> Iterator[str]:
    """Returns the invariants that are violated over seeds; a fault that stops the engine itself doesn't count."""
    for seed in range(SEEDS_OF_A_FAULT):
        try:
            SharePartitionWorld(seed).run(STEPS)
        except Broken as broken:
            yield str(broken).partition(":")[0]
        except (AssertionError, ValueError, IndexError, KeyError):
            yield "something else"
