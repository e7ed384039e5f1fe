"""The small files of a data directory, damaged: the broker names what is wrong and doesn't start, or all is there."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from coordinator.cluster.formatting import WrongOwner
from protocol.errors import KafkaError
from storage.checkpoint import CorruptCheckpoint
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
    "t-0/partition.metadata",
    "t-0/leader-epoch-checkpoint",
    "t-0/00000000000000000003.snapshot",
    "__cluster_metadata-0/quorum-state",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "__cluster_metadata-0/partition.metadata",
    "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
)
DAMAGES = ("missing", "empty", "cut", *range(4))
"""The last are the seeds of a flipped bit."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sound") / "data"


@pytest.fixture
async def data(sound: Path, tmp_path: Path) -> Path:
    """The directory of a broker that was stopped in order, with records in a topic."""
    if not sound.exists():
        async with InProcess(sound, OPTIONS) as broker:
            await broker.create_topic("t", 1)
            for record in RECORDS:
                await produce(broker.client(), "t", batch(record))
            await broker.settled()
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


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", DAMAGES)
async def test_nothing_is_lost_in_silence(data: Path, name: str, how: str | int) -> None:
    damage(data / name, how)
    broker = InProcess(data, OPTIONS)
    try:
        await broker.__aenter__()
    except (CorruptCheckpoint, WrongOwner, KafkaError) as refused:
        assert str(data / Path(name).parent) in str(refused)
        return
    try:
        records = bytes((await fetch(broker.client(), "t")).records or b"")
        assert all(record in records for record in RECORDS)
    finally:
        await broker.__aexit__(None, None, None)
