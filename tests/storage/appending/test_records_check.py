"""Tests the append of records that are invalid, or take long to check."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from bench.jars import APACHE_KAFKA
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import read_header
from protocol.records.compression import Compression
from protocol.records.message_set import encode_message_set, read_messages
from protocol.records.record import MAX_INFLATED_SIZE, Record, read_records
from protocol.types import TopicPartition
from storage.appending.append import AppendRules, settle
from storage.appending.records_check import LOOP_BYTES, TooLong, loop_limit
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.log import Log
from storage.producers.entry import Origin
from tests.interop.conformance.poison import POISON, batch, packed, record, several
from tests.interop.conformance.poison_page import PAGE, head
from tests.interop.conformance.records import OLD_MS

NOW_MS = OLD_MS + 1000
REFUSED = ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP
MIB = 1 << 20


def new_log(folder: Path, **configs: str) -> Log:
    config = LogConfig.parse({name.replace("_", "."): value for name, value in configs.items()})
    return Log.open(str(folder / "t-0"), TopicPartition("t", 0), config, disk=OsDisk(), now_ms=NOW_MS)


def append(log: Log, data: bytes, origin: Origin = Origin.CLIENT) -> int:
    view = memoryview(bytearray(data))
    return log.append(view, leader_epoch=0, now_ms=NOW_MS, origin=origin).base_offset


def contents(log: Log) -> bytes:
    return b"".join(bytes(view) for view in log.read(0, 1 << 30).parts)


@pytest.mark.parametrize("case", POISON)
def test_what_is_taken_can_be_read_and_what_is_refused_leaves_nothing(case: str, tmp_path: Path) -> None:
    poison = POISON[case]
    log = new_log(tmp_path, **poison.configs)
    append(log, batch(several(2), 2))
    before = contents(log)
    code = refusal(log, poison.data)
    if code is not None:
        assert (code in REFUSED, contents(log), log.log_end_offset) == (True, before, 2)
    else:
        written = contents(log)
        header = read_header(written, len(before))
        assert len(list(read_records(written, len(before), header))) == header.records_count


def refusal(log: Log, data: bytes) -> ErrorCode | None:
    try:
        append(log, data)
    except KafkaError as error:
        return error.code
    return None


@pytest.mark.parametrize("case", POISON)
def test_in_pieces_the_same_is_refused(case: str) -> None:
    poison = POISON[case]
    rules = AppendRules(LogConfig.parse({key.replace("_", "."): value for key, value in poison.configs.items()}))
    assert settled(poison.data, rules, at_length=True) == settled(poison.data, rules, at_length=False)


def settled(data: bytes, rules: AppendRules, *, at_length: bool) -> object:
    try:
        batches = settle(memoryview(bytearray(data)), rules, Origin.CLIENT, NOW_MS, at_length=at_length).batches
    except KafkaError as error:
        return error.code, getattr(error, "record_errors", None)
    return [(read_header(one)[5:], list(read_records(one, 0, read_header(one)))) for one in batches]


def test_a_topic_may_trust_its_producers(tmp_path: Path) -> None:
    log = new_log(tmp_path, odradek_records_check="false")
    assert append(log, batch(several(2), 3)) == 0
    assert append(log, batch(b"no frame", 3, Compression.LZ4)) == 3


def test_what_a_coordinator_writes_is_not_looked_at(tmp_path: Path) -> None:
    assert append(new_log(tmp_path), batch(several(2), 3), Origin.COORDINATOR) == 0


def test_the_header_s_largest_timestamp_is_the_records(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(several(3), 3, max_timestamp=OLD_MS + 500))
    append(log, packed(several(3) + record(3, time=7), 4, Compression.LZ4))
    assert read_header(contents(log)).max_timestamp == OLD_MS
    assert read_header(contents(log), read_header(contents(log)).size_bytes).max_timestamp == OLD_MS + 7


BOMBS = {codec.name: packed(record(value=bytes(30 * MIB)), 1, codec) for codec in Compression if codec}


@pytest.mark.parametrize("codec", BOMBS)
def test_what_inflates_beyond_a_moments_work_is_for_another_thread(codec: str, tmp_path: Path) -> None:
    log = new_log(tmp_path, max_message_bytes=str(4 * MIB))
    view = memoryview(bytearray(BOMBS[codec]))
    before = bytes(view)
    with pytest.raises(TooLong):
        log.append(view, leader_epoch=0, now_ms=NOW_MS)
    assert (bytes(view), log.log_end_offset) == (before, 0)
    ready = settle(view, log.rules, Origin.CLIENT, NOW_MS, at_length=True)
    assert log.append(view, leader_epoch=0, now_ms=NOW_MS, settled=ready).base_offset == 0


def test_what_was_settled_by_other_rules_is_settled_anew(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    view = memoryview(bytearray(batch(several(2), 2)))
    ready = settle(view, AppendRules(LogConfig.parse({"compression.type": "gzip"})), Origin.CLIENT, NOW_MS)
    log.append(view, leader_epoch=0, now_ms=NOW_MS, settled=ready)
    assert not read_header(contents(log)).attributes


@pytest.mark.parametrize("codec", list(Compression))
def test_records_are_recoded_in_pieces(codec: Compression) -> None:
    rules = AppendRules(LogConfig.parse({"compression.type": codec.name.lower() if codec else "uncompressed"}))
    source = Compression.GZIP if codec is not Compression.GZIP else Compression.LZ4
    data = b"".join(record(delta, value=bytes([delta & 0x7F]) * 1500) for delta in range(600))
    (out,) = settle(
        memoryview(bytearray(packed(data, 600, source))), rules, Origin.CLIENT, NOW_MS, at_length=True
    ).batches
    header = read_header(out)
    assert header.compression is codec
    assert [record.value for record in read_records(out, 0, header)] == [bytes([n & 0x7F]) * 1500 for n in range(600)]


def test_work_is_in_proportion_to_what_arrived() -> None:
    small = packed(record(value=bytes(MIB // 2)), 1, Compression.GZIP)
    assert len(small) < 1000 < MIB // 2
    assert loop_limit(len(small)) < 100_000
    assert loop_limit(1 << 30) == LOOP_BYTES


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
def test_what_inflates_to_more_than_readers_take_is_refused(codec: Compression) -> None:
    rules = AppendRules(LogConfig.parse({}))
    fits = packed(record(value=bytes(MAX_INFLATED_SIZE - 100)), 1, codec)
    view = memoryview(bytearray(fits))
    assert len(settle(view, rules, Origin.CLIENT, NOW_MS, at_length=True).batches) == 1
    view = memoryview(bytearray(packed(record(value=bytes(MAX_INFLATED_SIZE)), 1, codec)))
    with pytest.raises(KafkaError) as caught:
        settle(view, rules, Origin.CLIENT, NOW_MS, at_length=True)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


LIMITED = {"max.decompressed.message.bytes": "1000"}


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
@pytest.mark.parametrize("at_length", [True, False])
def test_a_compressed_record_has_a_limit_of_its_own(codec: Compression, at_length: bool) -> None:
    rules = AppendRules(LogConfig.parse(LIMITED))
    fits, too_large = (packed(record(0) + record(1, value=bytes(size)), 2, codec) for size in (992, 993))
    assert isinstance(settled(fits, rules, at_length=at_length), list)
    with pytest.raises(KafkaError, match="1001 exceeds the configured maximum record size of 1000") as caught:
        settle(memoryview(bytearray(too_large)), rules, Origin.CLIENT, NOW_MS, at_length=at_length)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_an_uncompressed_record_has_only_the_limit_of_its_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path, max_decompressed_message_bytes="1000")
    assert append(log, batch(record(value=bytes(5000)), 1)) == 0
    with pytest.raises(KafkaError, match="maximum record size"):
        append(log, packed(record(value=bytes(5000)), 1, Compression.LZ4))
    assert log.log_end_offset == 1


@pytest.mark.parametrize("configs", [{"odradek_records_check": "false"}, {"compression_type": "gzip"}])
def test_no_other_option_takes_a_records_limit_away(configs: dict[str, str], tmp_path: Path) -> None:
    log = new_log(tmp_path, max_decompressed_message_bytes="1000", **configs)
    with pytest.raises(KafkaError, match="maximum record size"):
        append(log, packed(record(value=bytes(5000)), 1, Compression.LZ4))


@pytest.mark.parametrize("codec", BOMBS)
def test_a_record_beyond_the_limit_is_refused_before_it_is_inflated(codec: str) -> None:
    rules = AppendRules(LogConfig.parse({**LIMITED, "max.message.bytes": str(4 * MIB)}))
    view = memoryview(bytearray(BOMBS[codec]))
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError, match="maximum record size"):
            settle(view, rules, Origin.CLIENT, NOW_MS, at_length=True)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_in_a_wrapper_has_the_limit_too(magic: int) -> None:
    rules = AppendRules(LogConfig.parse(LIMITED))
    sets = [
        encode_message_set([Record(0, 0, None, bytes(size))], magic, compression=Compression.GZIP)
        for size in (900, 2000)
    ]
    assert isinstance(settled(bytes(sets[0]), rules, at_length=True), list)
    with pytest.raises(KafkaError, match="maximum record size") as caught:
        settle(memoryview(bytearray(sets[1])), rules, Origin.CLIENT, NOW_MS, at_length=True)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(KafkaError, match="maximum record size"):
        list(read_messages(sets[1], largest=1000))


def test_the_page_has_the_limits_and_a_row_for_each_case() -> None:
    """The conformance tests check the answers of these cases."""
    text = PAGE.read_text()
    assert text.startswith(head(APACHE_KAFKA))
    for case in POISON:
        assert f"{case.partition(': ')[2]} |" in text
