"""Runs quorums with real logs, images and snapshots on disks that tear writes, lose power, fill up, and flip bits:
nothing committed is lost, a damaged file is never used, and a healthy quorum goes on.

A failing run is its seed: `python -m tests.simulation 17 quorum_stored`.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.simulation.detection import finding
from tests.simulation.quorum_stored import StoredNode, simulate_stored

STEPS = 40
SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quorum_keeps_what_is_committed_on_failing_disks(seed: int) -> None:
    simulate_stored(seed, STEPS)


def test_every_fault_of_a_disk_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(40):
        counts += simulate_stored(seed, STEPS).counts
    assert counts.keys() >= {
        "adopted", "all without power", "crashed while it started", "cut", "disk full", "flipped bit found at a start",
        "flipped bit without consequence", "flipped in .log", "flipped in .checkpoint", "flipped in quorum-state",
        "flipped in leader-epoch-checkpoint", "flipped in flushed-offset", "truncated",
    }  # fmt: skip


class FlushesNothing(StoredNode):
    """A node that takes each flush as done."""

    def make_durable(self, offset: int) -> None:
        self.disk.flushed = max(self.disk.flushed, self.disk.end_offset)


class NotesNoFlush(StoredNode):
    """Damage in the last batch is taken as a torn end, although the batch was flushed."""

    def _open(self) -> None:
        self.files.unlink(os.path.join(self.folder, "flushed-offset"), missing_ok=True)
        super()._open()


class KeepsNoChecksum(StoredNode):
    """A `quorum-state` without its checksum, as Apache Kafka writes it."""

    def _open(self) -> None:
        path = os.path.join(self.folder, "quorum-state")
        if self.files.exists(path):
            content, _, _ = self.files.read_file(path).partition(b',"checksum"')
            room, self.files.room = self.files.room, None
            self.files.write_file(path, content.removesuffix(b"}") + b"}")
            self.files.room = room
        super()._open()


@pytest.mark.parametrize(
    ("kind", "text", "seeds"),
    [
        (FlushesNothing, "flushed", range(10)),
        (NotesNoFlush, "flushed to", range(24, 40)),
        (KeepsNoChecksum, "quorum-state has", range(91, 120)),
    ],
)
def test_a_fault_is_found_out(kind: type[StoredNode], text: str, seeds: range) -> None:
    assert text in finding(lambda seed: simulate_stored(seed, STEPS, kind), seeds)
