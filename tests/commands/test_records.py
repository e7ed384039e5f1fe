"""Tests how records are parsed, printed and assigned to partitions."""

from __future__ import annotations

import io
import json
import sys

import pytest

from commands.errors import CommandError
from commands.groups.range_assignor import assign_by_range
from commands.records.input import InputRecord, InputValues, LineLayout, chunks, from_json
from commands.records.output import PrintedRecord, as_row, compile_format
from commands.records.partitioning import murmur2
from commands.records.producer import BATCH_BYTES, ProduceOptions, RecordProducer, batches, batches_of_values
from commands.words.produce import ProduceProgress
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from protocol.records.batch import TimestampType
from protocol.records.record import Record
from protocol.types import TopicPartition
from tests.clock import ManualClock
from tests.commands.scripted_cluster import ScriptedCluster

PLACE = TopicPartition("orders", 3)


def printed(record: Record) -> PrintedRecord:
    return PrintedRecord(PLACE, record, TimestampType.CREATE_TIME)


# org.apache.kafka.common.utils.UtilsTest, testMurmur2
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_has_the_hash_that_java_gives_it(data: bytes, code: int) -> None:
    assert murmur2(data) == code & 0xFFFFFFFF


def test_records_come_in_pieces_wherever_the_pieces_end() -> None:
    text = b"one\ntwo\n\nthree"
    assert [part for chunk in chunks(io.BytesIO(text), b"\n") for part in chunk] == [b"one", b"two", b"", b"three"]
    assert [part for chunk in chunks(io.BytesIO(b"a--b--"), b"--") for part in chunk] == [b"a", b"b"]


def test_a_line_has_a_key_where_a_separator_says_so() -> None:
    assert LineLayout(b":").record(b"k:v:w") == InputRecord(b"k", b"v:w")
    assert LineLayout(None, b"k").record(b"k:v") == InputRecord(b"k", b"k:v")
    assert LineLayout(b":", empty_is_null=True).record(b"k:") == InputRecord(b"k", None)
    with pytest.raises(CommandError, match="has no key"):
        LineLayout(b":").record(b"kv")


@pytest.mark.parametrize(
    "record",
    [
        Record(7, 1_767_225_600_000, b"k", b"v", (("a", b"1"), ("b", None))),
        Record(0, 0, None, None),
        Record(1, 5, b"\xff\x00", b"\xfe"),
        Record(2, 5, b"", "ü\n".encode()),
    ],
)
def test_what_consume_prints_produce_reads(record: Record) -> None:
    row = as_row(printed(record))
    read = from_json(json.dumps(row).encode())
    assert (read.key, read.value, read.timestamp) == (record.key, record.value, record.timestamp)
    assert read.headers == record.headers
    assert read.partition == PLACE.partition


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"key": "", "partition": "x"}', "partition 'x'"),
        (b'{"key": "", "partition": -1}', "partition -1"),
        (b'{"key": "", "headers": ["a"]}', "headers"),
        (b'{"key": "", "headers": [1, 2]}', "the name 1"),
        (b'{"key_base64": "?"}', "not base64"),
        (
            b'{"key": "k", "payloadd": "v"}',
            "unknown key 'payloadd'; did you mean payload\\? .*the keys are key, payload",
        ),
        (b'{"headers": []}', "none of the keys key, payload"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_json_that_is_no_record_is_refused_with_the_reason(line: bytes, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        from_json(line)


def test_a_payload_that_is_json_itself_is_sent_as_json() -> None:
    assert from_json(b'{"payload": {"a": [1]}}').value == b'{"a": [1]}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%t/%p@%o %k=%v\\n", b"orders/3@9 k=\xff\n"),
        ("%k{hex} %v{base64} %S %K", b"6b /w== 1 1"),
        ("%T %D", b"1767225600000 2026-01-01T00:00:00.000Z"),
        ("%h|%%|\\t|\\q", b"a=1,b=|%|\t|\\q"),
        ('%k{json} %s{hex}', b'"k" ff'),
    ],
)  # fmt: skip
def test_a_format_prints_a_record(text: str, expected: bytes) -> None:
    record = Record(9, 1_767_225_600_000, b"k", b"\xff", (("a", b"1"), ("b", None)))
    assert compile_format(text)(printed(record)) == expected


@pytest.mark.parametrize("text", ["%x", "%k{rot13}"])
def test_a_directive_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--format %"):
        compile_format(text)


@pytest.mark.parametrize("count", [1, 3, 200_000])
def test_lines_are_divided_like_other_records(count: int) -> None:
    lines = InputValues([b"line"] * count, b"key", (("name", b"value"),))
    divided = batches_of_values(lines)
    assert [line for batch in divided for line in batch.values] == lines.values
    assert all(len(batch.values) <= BATCH_BYTES // 4 for batch in divided)
    assert (len(divided) == 1) == (count < 10)


def test_large_lines_have_their_own_batches() -> None:
    large, small = bytes(BATCH_BYTES * 2), b"small"
    divided = batches_of_values(InputValues([small, small, large, small, large]))
    assert [len(batch.values) for batch in divided] == [2, 1, 1, 1]


def test_batches_hold_about_as_much_as_a_broker_takes() -> None:
    large = InputRecord(None, bytes(BATCH_BYTES * 2))
    small = InputRecord(None, bytes(BATCH_BYTES // 2 - 100))
    assert [len(batch) for batch in batches([small, small, small, large, small])] == [2, 1, 1, 1]


def test_neighbouring_partitions_go_to_members_in_their_order() -> None:
    subscriptions: dict[str, tuple[str | None, list[str]]] = {
        "b": (None, ["t", "u"]),
        "a": (None, ["t"]),
        "z": ("static", ["t", "gone"]),
    }
    assert assign_by_range(subscriptions, {"t": 5, "u": 1}) == {
        "z": {"t": [0, 1]},
        "a": {"t": [2, 3]},
        "b": {"t": [4], "u": [0]},
    }


def test_progress_is_shown_on_a_terminal_now_and_then_and_removed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    progress = ProduceProgress(clock)
    progress.show(1)
    clock.advance(1000)
    progress.show(2000)
    progress.show(2001)
    progress.clear()
    assert capsys.readouterr().err == f"\r2000 records written, 2000/s\r{' ' * 28}\r"


def test_progress_is_not_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()
    progress = ProduceProgress(clock)
    clock.advance(1000)
    progress.show(2000)
    progress.clear()
    assert capsys.readouterr().err == ""


async def test_a_producer_that_gives_up_names_the_last_error() -> None:
    cluster = ScriptedCluster(orders=1)
    full = PartitionProduceResponse(index=0, error_code=ErrorCode.KAFKA_STORAGE_ERROR, base_offset=-1)
    cluster.answer(
        ProduceRequest, ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[full])])
    )
    producer = RecordProducer(cluster.client, ProduceOptions(idempotent=False))
    await producer.begin()
    with pytest.raises(CommandError, match="orders-0: KAFKA_STORAGE_ERROR"):
        await producer.send("orders", [InputRecord(None, b"x", ())])
