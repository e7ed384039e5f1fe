"""Tests the broker's cleaner, with its real process."""

from __future__ import annotations

import random
from pathlib import Path

from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from protocol.types import TopicPartition
from storage.config import LogConfig
from tests.broker.inprocess import InProcess
from tests.storage.cleaning import latest, pairs
from tests.waiting import until

OPTIONS = {"log.cleaner.backoff.ms": "10", "log.cleaner.dedupe.buffer.size": "2097152"}
CONFIGS = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.1", "segment_bytes": "1048576"}


def damage(file: Path) -> None:
    with file.open("r+b") as content:
        content.seek(500)
        content.write(b"damage")


def unfinished(directory: Path) -> list[Path]:
    return [*directory.rglob("*.cleaned"), *directory.rglob("*.swap")]


async def fill(broker: InProcess, topic: str, rounds: int, *, compression: Compression = Compression.NONE) -> None:
    """Writes ten keys again and again, in batches of a hundred kilobytes."""
    partition = broker.server.broker.replicas.partition(topic, 0)
    now_ms = broker.server.broker.clock.now_ms()
    for n in range(rounds):
        records = [
            Record(0, now_ms, f"k{key}".encode(), random.Random(10 * n + key).randbytes(5_000).hex().encode())
            for key in range(10)
        ]
        partition.append(memoryview(build(records, compression=compression)), now_ms)


async def cleaned(broker: InProcess, count: int = 1) -> None:
    await until(lambda: broker.server.housekeeping.cleaner.cleaned >= count)


async def test_a_compacted_topic_is_cleaned_and_stays_the_same_to_a_reader(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("t", 1, **CONFIGS)
        log = broker.server.broker.replicas.partition("t", 0).log
        await fill(broker, "t", 35)
        before = latest(log)
        size = log.size_bytes
        await cleaned(broker)
        assert log.size_bytes < size / 2
        assert latest(log) == before
        assert len(pairs(log)) < 200
        assert (tmp_path / "cleaner-offset-checkpoint").read_text() == f"0\n1\nt 0 {log.cleaned_to}\n"
        assert unfinished(tmp_path) == []


async def test_a_damaged_log_is_reported_once_and_left_alone(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        cleaner = broker.server.housekeeping.cleaner
        for topic in ("bad", "good"):
            await broker.create_topic(topic, 1, **CONFIGS)
        log = broker.server.broker.replicas.partition("bad", 0).log
        await fill(broker, "bad", 9)
        damage(Path(log.segments.first.path))
        await fill(broker, "bad", 5)
        await fill(broker, "good", 35)
        await cleaned(broker)
        assert list(cleaner.uncleanable) == [TopicPartition("bad", 0)]
        assert "CRC" in cleaner.uncleanable[TopicPartition("bad", 0)].reason
        assert cleaner.count_uncleanable(str(tmp_path)) == 1
        await broker.server.broker.controller.submit(
            DeleteTopicsRequest(topic_names=["bad"], timeout_ms=1000), DeleteTopicsResponse
        )
        await cleaner.choose()
        assert cleaner.count_uncleanable(str(tmp_path)) == 0, "what is deleted is nobody's trouble"


async def test_a_log_with_a_record_beyond_the_limit_is_cleaned_after_the_limit_is_raised(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("t", 1, **CONFIGS)
        log = broker.server.broker.replicas.partition("t", 0).log
        raised = log.config
        await fill(broker, "t", 35, compression=Compression.LZ4)
        log.config = LogConfig.parse({**raised.explicit, "max.decompressed.message.bytes": "1000"})
        cleaner = broker.server.housekeeping.cleaner
        await until(lambda: bool(cleaner.uncleanable))
        assert "maximum record size" in cleaner.uncleanable[TopicPartition("t", 0)].reason
        log.config = raised
        await cleaned(broker)
        assert not cleaner.uncleanable


async def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS) as broker:
        await broker.create_topic("t", 1, **CONFIGS)
        await fill(broker, "t", 20)
        await cleaned(broker)
        cleaner = broker.server.housekeeping.cleaner
        for process in (*cleaner._idle, *cleaner._busy.values()):
            assert process._process is not None
            process._process.kill()
        await fill(broker, "t", 40)
        await cleaned(broker, 2)


async def test_a_topic_may_be_deleted_while_it_is_cleaned(tmp_path: Path) -> None:
    async with InProcess(tmp_path, OPTIONS | {"log.cleaner.io.max.bytes.per.second": "100000"}) as broker:
        await broker.create_topic("t", 1, **CONFIGS)
        log = broker.server.broker.replicas.partition("t", 0).log
        await fill(broker, "t", 20)
        await until(lambda: log.cleaning)
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        await broker.server.broker.controller.submit(request, DeleteTopicsResponse)
        await broker.create_topic("u", 1, **CONFIGS)
        await fill(broker, "u", 1)
    assert not (tmp_path / "t-0").exists()
    points = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert "\nu 0 " in points
    assert "\nt 0 " not in points
