"""Tests logs on disk of a topic that was deleted, and created again with the same name, while the broker was down."""

from __future__ import annotations

from pathlib import Path

from storage.checkpoint import read_partition_metadata, write_partition_metadata
from storage.disk import OsDisk
from tests.broker.inprocess import InProcess

FORMER_ID = b"the-former-topic"


async def test_a_log_of_a_former_topic_is_set_aside_and_the_partition_begins_empty(tmp_path: Path) -> None:
    async with InProcess(tmp_path) as broker:
        topic_id = await broker.create_topic("orders", partitions=2)
    folder = tmp_path / "orders-0"
    (folder / "partition.metadata").unlink()
    write_partition_metadata(OsDisk(), str(folder), FORMER_ID, sync=False)
    async with InProcess(tmp_path) as broker:
        assert broker.server.broker.replicas.leader("orders", 0).log_end_offset == 0
        assert read_partition_metadata(OsDisk(), str(folder)) == topic_id
    (stray,) = folders(tmp_path, "orders-0.*-stray")
    assert read_partition_metadata(OsDisk(), str(stray)) == FORMER_ID
    assert folders(tmp_path, "orders-1.*") == []


def folders(directory: Path, pattern: str) -> list[Path]:
    return list(directory.glob(pattern))
