"""Damages the small files of a data directory: the broker either names the damage and doesn't start, or has all of its
data."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from cli.main import main
from coordinator.cluster.formatting import WrongOwner
from protocol.errors import KafkaError
from protocol.types import TopicPartition
from storage.checkpoint import CLEANED_OFFSETS, CorruptCheckpoint, write_offsets
from storage.disk import OsDisk
from tests.broker.asking import batch, fetch, produce
from tests.broker.inprocess import InProcess

OPTIONS = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
RECORDS = [b"first", b"second", b"third"]

FILES = (
    "meta.properties",
    "bootstrap.checkpoint",
    ".kafka_cleanshutdown",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "t-0/partition.metadata",
    "t-0/leader-epoch-checkpoint",
    "t-0/00000000000000000003.snapshot",
    "__cluster_metadata-0/quorum-state",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "__cluster_metadata-0/partition.metadata",
    "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
)
DAMAGES = ("missing", "empty", "cut", *range(4))
"""The kinds of damage; the last are the seeds of a flipped bit."""


async def fill(directory: Path, options: dict[str, str] = OPTIONS) -> None:
    async with InProcess(directory, options) as broker:
        await broker.create_topic("t", 1)
        await broker.create_topic("compacted", 1, cleanup_policy="compact")
        for record in RECORDS:
            await produce(broker.client(), "t", batch(record))
            await produce(broker.client(), "compacted", batch(record, key=record))
        await broker.settled()
    checkpoint = str(directory / CLEANED_OFFSETS)
    write_offsets(OsDisk(), checkpoint, {TopicPartition("compacted", 0): len(RECORDS)})  # as after a cleaning


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a broker that was stopped cleanly, with records in a topic."""
    directory = tmp_path_factory.mktemp("sound") / "data"
    asyncio.run(fill(directory))
    return directory


@pytest.fixture
def data(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "data"))


def damage(path: Path, how: str | int) -> None:
    content = bytearray(path.read_bytes())
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        dice = Random(f"{path.name} {how}")
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        path.write_bytes(content)


async def start(data: Path) -> str | None:
    """Starts a broker and stops it. Returns the error of a rejected start, or None if its partition can be read."""
    broker = InProcess(data, OPTIONS)
    try:
        await broker.__aenter__()
    except (CorruptCheckpoint, WrongOwner, KafkaError) as refused:
        return str(refused)
    try:
        for topic in ("t", "compacted"):
            records = bytes((await fetch(broker.client(), topic)).records or b"")
            assert all(record in records for record in RECORDS)
    finally:
        await broker.__aexit__(None, None, None)
    return None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", DAMAGES)
async def test_nothing_is_lost_in_silence(data: Path, name: str, how: str | int) -> None:
    damage(data / name, how)
    refusal = await start(data)
    assert refusal is None or str(data / Path(name).parent) in refusal


@pytest.mark.parametrize("how", DAMAGES)
async def test_no_topic_is_lost_with_a_later_snapshot(tmp_path: Path, how: str | int) -> None:
    data = tmp_path / "data"
    await fill(data, {**OPTIONS, "metadata.log.max.record.bytes.between.snapshots": "1"})
    newest = max((data / "__cluster_metadata-0").glob("*.checkpoint"))
    assert int(newest.name[:20]) > 0
    damage(newest, how)
    refusal = await start(data)
    assert refusal is None or str(newest) in refusal


async def test_a_directory_under_another_id_is_refused_with_the_right_id(data: Path) -> None:
    path = data / "meta.properties"
    sound = path.read_text()
    right = next(line for line in sound.splitlines() if line.startswith("directory.id="))
    wrong = right[:-3] + ("A" if right[-3] != "A" else "B") + right[-2:]
    path.write_text(sound.replace(right, wrong))
    refusal = await start(data)
    assert refusal is not None
    assert f"set {right}" in refusal
    path.write_text(sound)
    assert await start(data) is None


async def test_a_directory_with_logs_is_not_formatted(data: Path) -> None:
    path = data / "meta.properties"
    sound = path.read_text()
    path.unlink()
    refusal = await start(data)
    assert refusal is not None
    assert f"meta.properties is missing, but {data}/" in refusal
    assert not path.exists()
    path.write_text(sound)
    assert await start(data) is None


async def test_topics_that_the_metadata_log_has_lost_leave_their_partitions_on_disk(data: Path) -> None:
    """The operator accepts the loss: the logs are set aside with all their records."""
    segment = data / "__cluster_metadata-0" / f"{0:020d}.log"
    content = segment.read_bytes()
    at = content.index(b"\x02t")  # the topic's record
    segment.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    records = (data / "t-0" / f"{0:020d}.log").read_bytes()
    refusal = await start(data)
    assert refusal is not None
    assert "whole batches follow" in refusal
    assert (data / "t-0" / f"{0:020d}.log").read_bytes() == records
    assert main(["log", "metadata", str(data)]) == 1
    assert main(["log", "metadata", "--accept", str(data)]) == 0
    async with InProcess(data, OPTIONS) as broker:
        assert broker.server.broker.image.topic("t") is None
    (stray,) = (name for name in os.listdir(data) if name.startswith("t-0.") and name.endswith("-stray"))
    assert (data / stray / f"{0:020d}.log").read_bytes() == records
