"""Snapshots of the metadata log: when they are written, and what is left behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.metadata import snapshots
from coordinator.cluster.snapshot import find_snapshots, read_snapshot, snapshot_path
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.records.control import KRaftVersionRecord, VotersRecord
from tests.broker.metadata.worlds import World
from tests.coordinator.cluster import given
from tests.coordinator.cluster.test_image_records import everything


@pytest.fixture
def soon_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOT_AFTER_BYTES", 1_500)


@pytest.mark.usefixtures("soon_due")
async def test_a_snapshot_is_renewed_when_enough_was_written(tmp_path: Path) -> None:
    world = World(tmp_path)
    for at in range(4):
        cluster = world.open()
        topics = [given.creatable(f"topic-{at}-{one}", 2, 1) for one in range(5)]
        await cluster.controller.create_topics(CreateTopicsRequest(topics=topics))
        world.stop(cluster)
    found = find_snapshots(file.name for file in world.folder().iterdir())
    assert len(found) == snapshots.KEPT_SNAPSHOTS
    assert found[-1].offset == cluster.metadata_log.end_offset
    latest = read_snapshot(world.disk, snapshot_path(str(world.folder()), found[-1]))
    assert [type(said) for said in latest.quorum[1:3]] == [KRaftVersionRecord, VotersRecord]
    again = world.open(register=False)
    assert everything(again.image) == everything(cluster.image)
    assert len(again.image.topic_names()) == 20
