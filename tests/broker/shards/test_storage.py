"""Tests the storage of a shard on a partition: which records are gathered, when they are written, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.clock import SystemClock
from broker.shards.storage import PartitionStorage
from coordinator.replication.roles import Following
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.records.building import build
from protocol.records.record import Record, read_records
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.log import Log
from tests.broker.following import acknowledge, follow, led
from tests.waiting import until

LIMIT = 1_000


class Piece(NamedTuple):
    """A record with a size."""

    value: bytes
    at_once: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.value)


class Told:
    """A callback that waits for a commit, and records its outcome."""

    def __init__(self) -> None:
        self.heard: list[KafkaError | None] = []

    def __call__(self, error: KafkaError | None) -> None:
        self.heard.append(error)


class Setting:
    def __init__(self, folder: Path, linger_ms: int | None = -1) -> None:
        name = TopicPartition("__consumer_offsets", 0)
        self.config = LogConfig(max_message_bytes=LIMIT)
        self.log = Log.open(str(folder / str(name)), name, self.config, disk=OsDisk(), now_ms=0, clean=True)
        self.partition = led(name, self.log)
        linger = None if linger_ms is None else (lambda: linger_ms)
        self.storage: PartitionStorage[Piece] = PartitionStorage(self.partition, self.batches, SystemClock(), linger)
        self.refuses = False

    def batches(self, pieces: Sequence[Piece]) -> bytearray:
        if self.refuses:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
        return build([Record(timestamp=0, value=piece.value) for piece in pieces])

    def written(self) -> list[list[bytes | None]]:
        """Returns the values of each batch."""
        batches = []
        for part in self.log.read(0, 1 << 20).parts:
            for position, header in batch.iter_batches(part):
                batches.append([record.value for record in read_records(part, position, header)])
        return batches


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


async def test_what_comes_in_one_turn_of_the_loop_is_one_batch(setting: Setting) -> None:
    callback = Told()
    assert setting.storage.append([Piece(b"a")]) == 1
    assert setting.storage.append([Piece(b"b"), Piece(b"c")]) == 3
    setting.storage.when_committed(3, callback)
    assert (setting.written(), callback.heard) == ([], [])
    await asyncio.sleep(0)
    assert (setting.written(), callback.heard) == ([[b"a", b"b", b"c"]], [None])


async def test_what_is_committed_is_told_at_once(setting: Setting) -> None:
    callback = Told()
    setting.storage.when_committed(0, callback)
    assert callback.heard == [None]


async def test_a_batch_that_is_full_is_written_before_the_next_begins(setting: Setting) -> None:
    setting.storage.append([Piece(b"a" * 600)])
    setting.storage.append([Piece(b"b" * 600)])
    assert setting.written() == [[b"a" * 600]]
    await asyncio.sleep(0)
    assert setting.written() == [[b"a" * 600], [b"b" * 600]]


async def test_a_linger_time_gathers_over_several_turns(tmp_path: Path) -> None:
    setting = Setting(tmp_path, linger_ms=500)
    setting.storage.append([Piece(b"a")])
    await asyncio.sleep(0)
    setting.storage.append([Piece(b"b")])
    assert setting.written() == []
    await until(setting.written)
    assert setting.written() == [[b"a", b"b"]]


async def test_without_gathering_each_is_written_as_it_comes(tmp_path: Path) -> None:
    setting = Setting(tmp_path, linger_ms=None)
    setting.storage.append([Piece(b"a")])
    setting.storage.append([Piece(b"b")])
    assert setting.written() == [[b"a"], [b"b"]]


async def test_what_must_not_wait_is_written_behind_what_was_gathered(setting: Setting) -> None:
    setting.storage.append([Piece(b"a")])
    assert setting.storage.append([Piece(b"now", at_once=True)]) == 2
    assert setting.written() == [[b"a"], [b"now"]]


async def test_what_the_log_refuses_at_once_costs_nobody_else_anything(setting: Setting) -> None:
    setting.refuses = True
    with pytest.raises(KafkaError):
        setting.storage.append([Piece(b"now", at_once=True)])
    setting.refuses = False
    assert setting.storage.append([Piece(b"a")]) == 1


async def test_a_gathered_write_that_fails_is_the_end(setting: Setting) -> None:
    callback = Told()
    setting.storage.append([Piece(b"a")])
    setting.storage.when_committed(1, callback)
    setting.refuses = True
    await asyncio.sleep(0)
    assert [error.code for error in callback.heard if error is not None] == [ErrorCode.KAFKA_STORAGE_ERROR]
    setting.refuses = False
    with pytest.raises(KafkaError):
        setting.storage.append([Piece(b"b")])
    setting.storage.when_committed(0, callback)
    assert len(callback.heard) == 2
    assert callback.heard[1] is not None


async def test_who_waits_is_told_in_order_as_the_high_watermark_moves(setting: Setting) -> None:
    follow(setting.partition)
    heard: list[str] = []
    for name in ("a", "b"):
        offset = setting.storage.append([Piece(name.encode())])
        setting.storage.when_committed(offset, lambda _, name=name: heard.append(name))  # type: ignore[misc]
    await asyncio.sleep(0)
    assert (setting.written(), heard) == ([[b"a", b"b"]], [])
    acknowledge(setting.partition, 1)
    assert heard == ["a"]
    setting.storage.when_committed(2, lambda _: heard.append("who asks behind another"))
    assert heard == ["a"]
    acknowledge(setting.partition, 2)
    assert heard == ["a", "b", "who asks behind another"]


async def test_nothing_is_gathered_that_too_few_replicas_would_have(setting: Setting) -> None:
    setting.partition.configure(LogConfig(max_message_bytes=LIMIT, min_insync_replicas=2))
    follow(setting.partition, in_sync=False)
    with pytest.raises(KafkaError) as raised:
        setting.storage.append([Piece(b"a")])
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    follow(setting.partition)
    assert setting.storage.append([Piece(b"a")]) == 1


async def test_what_was_gathered_is_not_written_once_the_shard_is_given_up(setting: Setting) -> None:
    callback = Told()
    setting.storage.append([Piece(b"a")])
    setting.storage.when_committed(1, callback)
    setting.storage.abandon(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    await asyncio.sleep(0)
    assert setting.written() == []
    assert [error.code for error in callback.heard if error is not None] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_whose_commit_another_leader_decides_is_told_so(setting: Setting) -> None:
    follow(setting.partition)
    callback = Told()
    setting.storage.append([Piece(b"a")])
    setting.storage.when_committed(1, callback)
    setting.storage.flush()
    setting.partition.become(Following(2, 1, 1), 0)
    assert [error.code for error in callback.heard if error is not None] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_everything_that_was_written_is_read_in_pieces(setting: Setting) -> None:
    for number in range(50):
        setting.storage.append([Piece(b"%03d" % number + b"x" * 500)])
    setting.storage.flush()
    values = [
        record.value
        async for piece in setting.storage.read()
        for position, header in batch.iter_batches(piece)
        for record in read_records(piece, position, header)
    ]
    assert [value[:3] for value in values if value is not None] == [b"%03d" % number for number in range(50)]
