"""Compares our log files and rules with Apache Kafka's own classes (tests/interop/jvm/StorageFormats.java)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL, MAX_SEQUENCE, TRANSACTIONAL, BatchHeader
from protocol.types import TopicPartition, uuid_from_text
from storage.checkpoint import RECOVERY_POINTS, write_clean_shutdown, write_offsets, write_partition_metadata
from storage.disk import OsDisk
from storage.epochs import LeaderEpochCache
from storage.meta_properties import META_PROPERTIES, MetaProperties, read_meta_properties, write_meta_properties
from storage.producers.entry import EndMarker, Origin
from storage.producers.snapshot import decode_snapshot
from storage.producers.state import ProducerState
from storage.segment.index import OffsetIndex
from storage.segment.time_index import TimeIndex
from storage.segment.txn_index import AbortedTxn, TransactionIndex
from tests.interop import jvm
from tests.interop.processes import run

DISK = OsDisk()
SOURCE = jvm.HERE / "StorageFormats.java"
BASE = 1000
ID = "5BZ1oqBgQ4e1X7pCzHiGjQ"
DAY_MS = 86_400_000
START_MS = 1_700_000_000_000

Command = tuple[str | int | Path, ...]


def ask_kafka(commands: Sequence[Command]) -> list[str]:
    """Returns the answers of Apache Kafka's classes to these commands."""
    script = "".join(" ".join(map(str, command)) + "\n" for command in commands)
    ended = run(jvm.java(f"{jvm.apache_kafka()}/*", str(SOURCE)), stdin=script.encode())
    return ended.stdout.decode().splitlines()


def write_ours(folder: Path) -> None:
    """Writes the same values as StorageFormats.java."""
    offsets = OffsetIndex(str(folder / f"{BASE:020d}.index"), BASE, disk=DISK, max_size_bytes=1024, fresh=True)
    offsets.append(1010, 100)
    offsets.append(1035, 400)
    offsets.close()
    times = TimeIndex(str(folder / f"{BASE:020d}.timeindex"), BASE, disk=DISK, max_size_bytes=1024, fresh=True)
    times.maybe_append(START_MS, 1010)
    times.maybe_append(START_MS + 999, 1035)
    times.close()
    aborted = TransactionIndex(str(folder / f"{BASE:020d}.txnindex"), BASE, disk=DISK)
    aborted.append(AbortedTxn(4000, 1005, 1019, 1012))
    aborted.append(AbortedTxn(4001, 1012, 1030, 1031))
    epochs = LeaderEpochCache(str(folder), disk=DISK)
    epochs.assign(0, 0)
    epochs.assign(5, 1010)
    epochs.flush()
    write_offsets(DISK, str(folder / RECOVERY_POINTS), {TopicPartition("orders", 0): 1035})
    write_clean_shutdown(DISK, str(folder), 17)
    write_partition_metadata(DISK, str(folder), uuid_from_text(ID))
    write_meta_properties(DISK, str(folder), MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, uuid_from_text(ID)))


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != META_PROPERTIES}


def test_our_files_are_kafka_s_and_kafka_reads_them(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    write_ours(ours)
    answers = ask_kafka([("dir", theirs), ("write",), ("read",), ("dir", ours), ("read",)])
    assert answers[4] == answers[2]
    assert "entries" not in answers[2]
    assert "[2 OffsetPosition" in answers[2]
    assert files(ours) == files(theirs)
    assert read_meta_properties(DISK, str(theirs)) == read_meta_properties(DISK, str(ours))


def test_kafka_dumps_our_snapshots_and_transaction_indexes(tmp_path: Path) -> None:
    write_ours(tmp_path)
    state = ProducerState(str(tmp_path), disk=DISK, expiration_ms=DAY_MS)
    state.update(data_batch(4000, 3, 5, 5, START_MS, TRANSACTIONAL), 95, START_MS)
    state.end_offset = 100
    snapshot = state.take_snapshot()
    dumped = jvm.tool("kafka-dump-log", "--files", f"{snapshot},{tmp_path / f'{BASE:020d}.txnindex'}")
    assert dumped.splitlines()[1] == (
        "producerId: 4000 producerEpoch: 3 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[95] "
        "lastTimestamp: 1700000000000 firstSequence: 5 lastSequence: 9 lastOffset: 99 offsetDelta: 4 "
        "timestamp: 1700000000000"
    )
    assert dumped.splitlines()[3:] == [
        "version: 0 producerId: 4000 firstOffset: 1005 lastOffset: 1019 lastStableOffset: 1012",
        "version: 0 producerId: 4001 firstOffset: 1012 lastOffset: 1030 lastStableOffset: 1031",
    ]


# Rules: random commands, answered by both.

ERRORS = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.INVALID_PRODUCER_EPOCH: "InvalidProducerEpochException",
    ErrorCode.INVALID_TXN_STATE: "InvalidTxnStateException",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "TransactionCoordinatorFencedException",
}


def data_batch(pid: int, epoch: int, sequence: int, count: int, timestamp: int, attributes: int) -> BatchHeader:
    return BatchHeader(0, 49, 0, 2, 0, attributes, count - 1, timestamp, timestamp, pid, epoch, sequence, count)


class Producers:
    """Our answers to the commands of StorageFormats.java."""

    def __init__(self, folder: Path) -> None:
        self.state = ProducerState(str(folder), disk=DISK, expiration_ms=DAY_MS)

    def batch(self, origin: str, *fields: int) -> str:
        pid, epoch, sequence, count, offset, timestamp, transactional = fields
        header = data_batch(pid, epoch, sequence, count, timestamp, TRANSACTIONAL * transactional)
        duplicate = self.state.check(header, Origin[origin])
        if duplicate is not None:
            return f"duplicate of {duplicate.first_offset}"
        self.state.update(header, offset, timestamp)
        self.state.end_offset = offset + count
        return "ok"

    def marker(self, origin: str, *fields: int) -> str:
        pid, epoch, coordinator_epoch, offset, timestamp, aborted, version = fields
        header = data_batch(pid, epoch, -1, 1, timestamp, TRANSACTIONAL | CONTROL)
        marker = EndMarker(bool(aborted), coordinator_epoch, timestamp, version)
        self.state.check(header, Origin[origin], marker=marker)
        completed = self.state.update(header, offset, timestamp, marker)
        self.state.end_offset = offset + 1
        if completed is None:
            return "nothing -1"
        stable = self.state.last_stable_offset(completed)
        self.state.complete(completed)
        outcome = "aborted" if completed.aborted else "committed"
        return f"{completed.first_offset}-{completed.last_offset} {outcome} {stable}"

    def unstable(self, high_watermark: int) -> str:
        self.state.on_high_watermark_updated(high_watermark)
        return or_none(self.state.first_unstable_offset)

    def expire(self, now_ms: int) -> str:
        self.state.remove_expired(now_ms)
        return str(sorted(self.state.producers))

    def snapshot(self) -> str:
        path = self.state.take_snapshot(sync=False)
        return "none" if path is None else Path(path).name

    def reload(self, start: int, end: int, now_ms: int) -> str:
        self.state.truncate_and_reload(start, end, now_ms)
        return str(self.state.end_offset)


class Epochs:
    """Our answers to the commands about leader epochs."""

    def __init__(self) -> None:
        self.cache = LeaderEpochCache("unwritten", disk=DISK)

    def assign(self, epoch: int, offset: int) -> str:
        self.cache.assign(epoch, offset)
        return self.shown()

    def cut_end(self, offset: int) -> str:
        self.cache.truncate_from_end(offset)
        return self.shown()

    def cut_start(self, offset: int) -> str:
        self.cache.truncate_from_start(offset)
        return self.shown()

    def end_of(self, epoch: int, log_end_offset: int) -> str:
        return "{} {}".format(*self.cache.end_offset_for(epoch, log_end_offset))

    def epoch_at(self, offset: int) -> str:
        return or_none(self.cache.epoch_for_offset(offset))

    def shown(self) -> str:
        return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in self.cache.entries) + "}"


def or_none(value: int | None) -> str:
    return "none" if value is None else str(value)


def our_answers(ours: object, commands: Sequence[Command]) -> Iterator[str]:
    for name, *arguments in commands:
        answer: Callable[..., str] = getattr(ours, str(name).replace("-", "_"))
        try:
            yield answer(*arguments)
        except KafkaError as error:
            yield ERRORS[error.code]


class Life:
    """Five producers, whose batches are mostly in order, with every kind of error mixed in."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.offset = 0
        self.now = START_MS
        self.epochs = dict.fromkeys(range(5), 0)
        self.sequences = dict.fromkeys(range(5), 0)
        self.sent: list[tuple[int, int, int, int]] = []

    def commands(self, count: int) -> Iterator[Command]:
        other = [self.marker, self.marker, self.unstable, self.expire, self.snapshot, self.reload]
        for _ in range(count):
            self.now += 1000
            yield self.dice.choice([self.batch, self.batch, self.dice.choice(other)])()

    def batch(self) -> Command:
        dice = self.dice
        pid = dice.randrange(5)
        epoch = self.epoch_of(pid)
        sequence = dice.choice([self.sequences[pid]] * 8 + [0, 1, MAX_SEQUENCE])
        size = dice.randint(1, 3)
        if self.sent and dice.random() < 0.15:
            pid, epoch, sequence, size = dice.choice(self.sent[-20:])
        self.sent.append((pid, epoch, sequence, size))
        self.sequences[pid] = (sequence + size) & MAX_SEQUENCE
        self.offset += size
        origin = dice.choice(["CLIENT"] * 8 + ["COORDINATOR", "REPLICATION"])
        transactional = int(dice.random() < pid / 4)
        return "batch", origin, pid, epoch, sequence, size, self.offset - size, self.now, transactional

    def marker(self) -> Command:
        dice = self.dice
        pid = dice.randrange(5)
        version = dice.choice([0, 1, 2])
        if version == 2 and dice.random() < 0.7:
            self.epochs[pid] += 1
            self.sequences[pid] = 0
        coordinator_epoch = self.offset // 500 - dice.choice([0, 0, 0, 0, 1])
        self.offset += 1
        origin = dice.choice(["COORDINATOR"] * 4 + ["REPLICATION"])
        fields = (coordinator_epoch, self.offset - 1, self.now, dice.randrange(2), version)
        return "marker", origin, pid, self.epoch_of(pid), *fields

    def epoch_of(self, pid: int) -> int:
        """Returns an epoch: mostly the producer's, sometimes a new one or a zombie's."""
        if self.dice.random() < 0.03:
            self.epochs[pid] += 1
            self.sequences[pid] = self.dice.choice([0, 0, 0, 5])
        return max(0, self.epochs[pid] - (self.dice.random() < 0.05))

    def unstable(self) -> Command:
        return "unstable", max(0, self.offset - self.dice.randrange(20))

    def expire(self) -> Command:
        return "expire", self.now + DAY_MS - self.dice.randrange(60_000)

    def snapshot(self) -> Command:
        return ("snapshot",)

    def reload(self) -> Command:
        return "reload", max(0, self.offset - 200), self.offset - self.dice.randrange(10), self.now


def epoch_commands(dice: random.Random, count: int) -> Iterator[Command]:
    end = 0
    for step in range(count):
        end += dice.randrange(4)
        kind = dice.choice(["assign", "assign", "assign", "cut-end", "cut-start", "end-of", "end-of", "epoch-at"])
        epoch = max(0, step // 10 + dice.randint(-3, 3))
        offset = max(0, end - dice.choice([0, 0, 0, dice.randrange(30)]))
        match kind:
            case "assign":
                yield kind, epoch, offset
            case "end-of":
                yield kind, dice.choice([-1, epoch]), end
            case _:
                yield kind, max(0, end - dice.randrange(60))


@pytest.mark.parametrize("seed", [1, 2])
def test_producers_are_judged_as_kafka_judges_them(tmp_path: Path, seed: int) -> None:
    commands = list(Life(seed).commands(5000))
    folder = tmp_path / "ours"
    folder.mkdir()
    theirs = ask_kafka([("dir", tmp_path / "theirs"), *commands])[1:]
    for number, ours in enumerate(our_answers(Producers(folder), commands)):
        assert ours == theirs[number], (
            f"command {number}: {commands[number]}, after {commands[max(0, number - 8) : number]}"
        )
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        file.name for file in (tmp_path / "theirs").iterdir() if file.suffix == ".snapshot"
    )
    for file in folder.iterdir():
        assert described(file) == described(tmp_path / "theirs" / file.name)


def described(snapshot: Path) -> list[tuple[int, ...]]:
    """Returns a snapshot's entries, sorted by producer id: Kafka's have the order of a hash map."""
    return sorted(
        (
            entry.producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.txn_first_offset,
            *entry.last_batch,
        )
        for entry in decode_snapshot(snapshot.read_bytes(), snapshot.name)
    )


def test_leader_epochs_are_kept_as_kafka_keeps_them(tmp_path: Path) -> None:
    commands = list(epoch_commands(random.Random(3), 2000))
    theirs = ask_kafka([("dir", tmp_path / "theirs"), *commands])[1:]
    for number, ours in enumerate(our_answers(Epochs(), commands)):
        assert ours == theirs[number], f"command {number}: {commands[number]}"
