"""Tests that the short cut of appends gives the same files, offsets and producers as the general way, or changes
nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.errors import KafkaError
from protocol.records.batch import HEADER_SIZE, read_header, stamp
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from protocol.types import TopicPartition
from storage.appending.appended import Appended
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.log import Log
from storage.plain_append import append_plain
from storage.producers.entry import Origin

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig.parse({"segment.bytes": "1048576", "index.interval.bytes": "200"})


def new_log(directory: Path) -> Log:
    return Log.open(str(directory / "t-0"), TopicPartition("t", 0), CONFIG, disk=OsDisk(), now_ms=NOW_MS)


def batch(count: int = 1, at_ms: int = NOW_MS, **fields: Any) -> memoryview:
    records = [Record(offset=n, timestamp=at_ms + n, key=None, value=b"v" * 40, headers=[]) for n in range(count)]
    return memoryview(build(records, **fields))


def append(log: Log, records: memoryview, *, plainly: bool) -> object:
    """Returns the result or the error of an append, by either way."""
    rules = log.rules
    rules.plain = plainly
    try:
        return log.append(records, leader_epoch=1, now_ms=NOW_MS)
    except KafkaError as error:
        return error.code


def contents(log: Log) -> object:
    segment = log.segments.active
    with open(segment.path, "rb") as file:
        data = file.read()
    entries = [list(segment.index), segment.time_index.entries, segment.max_timestamp, segment.first_timestamp]
    state = log.producer_state
    producers = {id: (entry.epoch, entry.batches, entry.txn_first_offset) for id, entry in state.producers.items()}
    return data, entries, producers, log.log_end_offset, log.last_leader_epoch, log.producer_state.end_offset


producers = st.fixed_dictionaries(
    {
        "producer_id": st.sampled_from([-1, 7, 8]),
        "producer_epoch": st.integers(0, 1),
        "base_sequence": st.integers(0, 4),
        "transactional": st.booleans(),
    }
)
batches = st.builds(
    lambda count, later, fields, codec: batch(
        count,
        NOW_MS + later,
        compression=Compression(codec),
        **(fields if fields["producer_id"] >= 0 else {}),
    ),
    st.integers(1, 3),
    st.sampled_from([-5, 0, 5, 7_200_000]),
    producers,
    st.integers(0, 4),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(batches, min_size=1, max_size=12))
def test_both_ways_leave_the_same_log(tmp_path_factory: pytest.TempPathFactory, sent: list[memoryview]) -> None:
    outcomes = []
    for plainly in (True, False):
        log = new_log(tmp_path_factory.mktemp("log"))
        results = [append(log, memoryview(bytearray(batch_bytes)), plainly=plainly) for batch_bytes in sent]
        outcomes.append((results, contents(log)))
    assert outcomes[0] == outcomes[1]


def test_the_usual_batch_takes_the_short_cut(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append(batch(), leader_epoch=1, now_ms=NOW_MS)
    assert append_plain(log, batch(3), 1, NOW_MS) == Appended(1, 3, -1, 0, False)


def test_a_batch_that_continues_its_transaction_takes_the_short_cut(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    producer = {"producer_id": 7, "producer_epoch": 1, "transactional": True}
    assert append_plain(log, batch(**producer, base_sequence=0), 1, NOW_MS) is None, "it begins the log"
    log.append(batch(**producer, base_sequence=0), leader_epoch=1, now_ms=NOW_MS)
    log.append(batch(), leader_epoch=1, now_ms=NOW_MS)
    other = {**producer, "producer_id": 8}
    assert append_plain(log, batch(**other, base_sequence=0), 1, NOW_MS) is None, "it begins its transaction"
    assert append_plain(log, batch(**producer, base_sequence=2), 1, NOW_MS) is None, "a sequence is missing"
    before = {**producer, "transactional": False}
    assert append_plain(log, batch(**before, base_sequence=1), 1, NOW_MS) is None, "its transaction is open"
    assert append_plain(log, batch(2, **producer, base_sequence=1), 1, NOW_MS) == Appended(2, 3, -1, 0, False)
    assert log.producer_state.producers[7].txn_first_offset == 0
    assert append_plain(log, batch(transactional=True), 1, NOW_MS) is None, "it has no producer"


@pytest.mark.parametrize(
    ("position", "value"),
    [(7, 1), (16, 1), (17, 0), (22, 5), (22, 0x10), (22, 0x20), (22, 8), (26, 9), (60, 9), (57, 0xFF)],
    ids=["offset", "magic", "crc", "codec", "transaction", "marker", "append time", "delta", "count", "negative count"],
)
def test_an_unusual_batch_is_left_alone(position: int, value: int, tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append(batch(), leader_epoch=1, now_ms=NOW_MS)
    odd = batch()
    odd[position] = value
    before = bytes(odd), contents(log)
    assert append_plain(log, odd, 1, NOW_MS) is None
    assert (bytes(odd), contents(log)) == before


@pytest.mark.parametrize("size", [0, 11, HEADER_SIZE - 1, HEADER_SIZE, 80])
def test_a_torn_batch_is_left_alone(size: int, tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append(batch(), leader_epoch=1, now_ms=NOW_MS)
    assert append_plain(log, batch()[:size], 1, NOW_MS) is None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 3), min_size=1, max_size=8))
def test_a_coordinators_records_take_it_into_a_compacted_log(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int]
) -> None:
    config = LogConfig.parse({"segment.bytes": "1048576", "index.interval.bytes": "200", "cleanup.policy": "compact"})
    outcomes = []
    for plainly in (True, False):
        path = str(tmp_path_factory.mktemp("log") / "t-0")
        log = Log.open(path, TopicPartition("t", 0), config, disk=OsDisk(), now_ms=NOW_MS)
        assert log.rules.stored_as_sent
        log.rules.stored_as_sent = plainly
        appended = [
            log.append(batch(count), leader_epoch=1, now_ms=NOW_MS, origin=Origin.COORDINATOR) for count in counts
        ]
        outcomes.append((appended, contents(log)))
    assert outcomes[0] == outcomes[1]


@st.composite
def a_leaders_answers(draw: st.DrawFn) -> list[tuple[int, bytearray]]:
    """Returns a leader's batches with offsets and epochs, alone or several at once, each with the epoch of the
    follower's fetch."""
    answers, offset, epoch = [], draw(st.sampled_from([0, 3])), 1
    for _ in range(draw(st.integers(1, 8))):
        data = bytearray()
        epoch += draw(st.sampled_from([0, 0, 0, 1]))
        for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
            offset += draw(st.sampled_from([0, 0, 0, 0, 2, -1]))
            part = bytearray(draw(batches))
            stamp(part, 0, max(offset, 0), epoch)
            offset = read_header(part).next_offset
            data += part
        if draw(st.integers(0, 9)) == 0:
            data[-1] ^= 1
        answers.append((epoch - draw(st.sampled_from([0, 0, 0, 0, 1])), data))
    return answers


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a_leaders_answers())
def test_both_ways_leave_a_follower_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, answers: list[tuple[int, bytearray]]
) -> None:
    outcomes = []
    for plainly in (True, False):
        log = new_log(tmp_path_factory.mktemp("log"))
        results: list[object] = []
        for epoch, data in answers:
            appended = append_plain(log, memoryview(bytes(data)), epoch, NOW_MS, False, True) if plainly else None
            results.append(appended or general(log, bytes(data), epoch))
        outcomes.append((results, contents(log), log.epochs.entries))
    assert outcomes[0] == outcomes[1]


def general(log: Log, data: bytes, epoch: int) -> object:
    """Returns the result or the error of a follower's append by the general way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "_may_be_plain", lambda *_: False)
        try:
            return log.append(memoryview(data), leader_epoch=epoch, now_ms=NOW_MS, origin=Origin.REPLICATION)
        except KafkaError as error:
            return error.code


def test_a_leaders_usual_batch_takes_the_short_cut_as_it_is(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append(batch(), leader_epoch=1, now_ms=NOW_MS)
    data = bytearray(batch(3))
    stamp(data, 0, 1, 1)
    assert append_plain(log, memoryview(bytes(data)), 1, NOW_MS, False, True) == Appended(1, 3, -1, 0, False)
    stamp(data, 0, 5, 1)
    assert append_plain(log, memoryview(bytes(data)), 1, NOW_MS, False, True) is None, "offsets are missing"
    stamp(data, 0, 4, 2)
    assert append_plain(log, memoryview(bytes(data)), 1, NOW_MS, False, True) is None, "it is of a newer epoch"


def test_a_clients_records_without_keys_are_found_in_a_compacted_log(tmp_path: Path) -> None:
    config = LogConfig.parse({"cleanup.policy": "compact"})
    log = Log.open(str(tmp_path / "t-0"), TopicPartition("t", 0), config, disk=OsDisk(), now_ms=NOW_MS)
    with pytest.raises(KafkaError):
        log.append(batch(), leader_epoch=1, now_ms=NOW_MS)
