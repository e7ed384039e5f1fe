"""Tests a log with one damaged file, after a clean stop or a crash, with random damage: the broker starts, serves,
appends and stops, and deletes no readable record."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from protocol.errors import ErrorCode, KafkaError
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.log import Log
from storage.logs import Logs
from storage.producers.entry import Origin
from tests.storage.managing import ID, place
from tests.storage.writing import NOW_MS, batch, config, marker, read_all, values

SEEDS = range(3)
"""The random draws for each kind of file, damage and stop."""

MUCH_LATER_MS = NOW_MS + 10**9
"""A time after all delays of deletions."""

FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")

AT_LENGTH, AT_EPOCH, AT_MAGIC = 8, 12, 16
"""Positions of length, epoch and magic in a batch. A batch stays readable if its offset and epoch are damaged."""

Damage = Callable[[Path, Random], None]


def shorten(file: Path, dice: Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: dice.randrange(len(content) + 1)])


def extend_with_zeros(file: Path, dice: Random) -> None:
    file.write_bytes(file.read_bytes() + bytes(dice.randint(1, 5000)))


def flip_a_bit(file: Path, dice: Random) -> None:
    content = bytearray(file.read_bytes())
    if content:
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        file.write_bytes(content)


def remove(file: Path, dice: Random) -> None:
    file.unlink()


def fill(log: Log, dice: Random) -> None:
    """Fills a log with batches of two producers, transactions and epochs; flushes a part of it."""
    sequences, epoch, in_transaction = [0, 0], 0, False
    flushed_after = dice.randrange(40)
    for n in range(30):
        producer = dice.randrange(2)
        count = dice.randint(1, 3)
        data = batch(
            *(f"{n} {'x' * dice.randrange(60)}" for _ in range(count)),
            timestamp=NOW_MS + dice.randrange(1000),
            pid=10 + producer,
            sequence=sequences[producer],
            transactional=producer == 1,
        )
        log.append(data, leader_epoch=epoch, now_ms=NOW_MS)
        sequences[producer] += count
        in_transaction |= producer == 1
        if in_transaction and dice.random() < 0.3:
            end = marker(commit=dice.random() < 0.3, pid=11)
            log.append(end, leader_epoch=epoch, now_ms=NOW_MS, origin=Origin.COORDINATOR)
            in_transaction = False
        epoch += dice.random() < 0.1
        if n == flushed_after:
            log.flush(NOW_MS)
    log.update_high_watermark(log.log_end_offset)


class QuickDisk(OsDisk):
    """Files of a machine that never loses power: a flush takes no time."""

    def fsync(self, handle: int) -> None: ...

    def fsync_dir(self, path: str) -> None: ...


def start(directory: Path, topic_config: LogConfig) -> Logs:
    numbers = itertools.count()
    logs = Logs([str(directory)], disk=QuickDisk(), unique=lambda: f"{next(numbers):032x}", recovery_threads=1)
    logs.load(lambda _: topic_config, NOW_MS)
    return logs


def made(directory: Path, topic_config: LogConfig, dice: Random, *, clean: bool) -> list[bytes]:
    """Returns the batches of a log that a stopped broker left in this directory."""
    logs = start(directory, topic_config)
    log = logs.create(place(0), ID, topic_config, NOW_MS)
    fill(log, dice)
    written = [
        bytes(segment.view(position, position + header.size_bytes))
        for segment in log.segments
        for position, header in segment.batches()
    ]
    if clean:
        logs.close(NOW_MS)
    else:
        logs.write_checkpoints()
        log.segments.close()
    return written


def readable(folder: Path, written: list[bytes]) -> set[bytes]:
    """Returns the batches that are in any file of the folder, whatever their offsets say."""
    contents = [file.read_bytes() for pattern in ("*.log", "*.kept") for file in folder.glob(pattern)]
    return {data for data in written if any(has(content, data) for content in contents)}


def has(content: bytes, data: bytes) -> bool:
    at = content.find(data[AT_MAGIC:]) - AT_MAGIC
    return at >= 0 and content[at + AT_LENGTH : at + AT_EPOCH] == data[AT_LENGTH:AT_EPOCH]


def opened(directory: Path, topic_config: LogConfig) -> tuple[Logs, Log]:
    logs = start(directory, topic_config)
    assert [str(log_dir.error) for log_dir in logs.dirs.values() if not log_dir.online] == []
    log = logs.get(place(0))
    assert log is not None
    log.update_high_watermark(log.log_end_offset)
    return logs, log


def answers(log: Log) -> set[ErrorCode]:
    """Returns the errors of reads at all offsets."""
    return {error for offset in range(log.log_start_offset, log.log_end_offset) if (error := answer(log, offset))}


def answer(log: Log, offset: int) -> ErrorCode | None:
    try:
        log.read(offset, 1)
        log.aborted_transactions(offset, log.log_end_offset)
    except KafkaError as error:
        return error.code
    return None


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("damage", [shorten, extend_with_zeros, flip_a_bit, remove])
@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_costs_no_record_that_can_be_read(
    tmp_path: Path, kind: str, damage: Damage, clean: bool
) -> None:
    for seed in SEEDS:
        dice = Random(seed)
        directory = tmp_path / str(seed)
        compacted = dice.random() < 0.3
        topic_config = config(
            segment_bytes=dice.choice([600, 3000]),
            index_interval_bytes=dice.choice([1, 500]),
            cleanup_policy="compact" if compacted else "delete",
        )
        written = made(directory, topic_config, dice, clean=clean)
        end_offset = 1 + max(int.from_bytes(data[:8]) + int.from_bytes(data[23:27]) for data in written)
        folder = directory / "orders-0"
        files = [file for file in sorted(folder.iterdir()) if file.name.endswith(kind)]
        if not files:
            continue
        damage(dice.choice(files), dice)
        intact = readable(folder, written)

        logs, log = opened(directory, topic_config)
        label = f"seed {seed}: {log}"
        assert log.log_end_offset <= end_offset or (compacted and not clean), label
        assert answers(log) <= {ErrorCode.CORRUPT_MESSAGE}, label
        for n in range(20):
            log.append(batch(f"after {n}", "x" * 50), leader_epoch=99, now_ms=NOW_MS)
        log.update_high_watermark(log.log_end_offset)
        assert values(read_all(log, log.log_end_offset - 2))[0] == "after 19", label
        logs.apply_retention(NOW_MS)
        logs.delete_expired(MUCH_LATER_MS)
        logs.close(MUCH_LATER_MS)
        assert (directory / ".kafka_cleanshutdown").exists(), label
        assert intact <= readable(folder, written), label

        again = opened(directory, topic_config)[1]
        assert again.recovered.doubt is None, label
        assert again.log_end_offset == log.log_end_offset, label
        assert values(read_all(again, again.log_end_offset - 2))[0] == "after 19", label
