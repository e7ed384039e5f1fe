"""Tests records that are held back by their time or key: how they are scanned, and how a whole broker delivers them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from broker.clock import Clock
from broker.share import reading, record_scanner
from broker.share.record_scanner import RecordScanner, due_ms, read_facts
from broker.workers import Workers
from coordinator.group.config import GroupConfig
from coordinator.share_partition.holdback import HoldbackRules
from coordinator.share_partition.request import Acquired
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.records import batch
from protocol.records.building import build
from protocol.records.compression import Compression
from protocol.records.record import Record
from tests.broker.inprocess import LONG_S, InProcess
from tests.broker.share.test_dead_letters import DLQ_OPTIONS, begin, configure
from tests.broker.share.test_share_fetch import (
    GROUP,
    Fetching,
    acquired,
    eventually,
    serving,
)
from tests.coordinator.share_partition.given import share_partition, states
from tests.waiting import until

NOW_MS = 1_000_000
DAY_MS = 86_400_000
ACCEPT, RELEASE, REJECT = 1, 2, 3
GROUP_RESOURCE, INVALID_CONFIG = 32, 40
HEADER = "not-before"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0", NOW_MS),
        (b"1500", NOW_MS + 1500),
        (b"@1000500", NOW_MS + 500),
        (b"@0", 0),
        (b"86400001", NOW_MS + DAY_MS),
        (b"999999999999999999", NOW_MS + DAY_MS),
        (b"@999999999999999999", NOW_MS + DAY_MS),
        *((bad, None) for bad in (None, b"", b"@", b"-1", b"@-1", b"1.5", b"1e3", b" 1", b"5s", b"+5", b"1" * 19)),
        (b"\0\0\0\0\0\0\x05\xdc", None),
        ("\u0661".encode(), None),
    ],
)
def test_a_header_says_when(value: bytes | None, expected: int | None) -> None:
    assert due_ms(value, NOW_MS, DAY_MS, NOW_MS) == expected


def test_a_timestamp_far_ahead_delays_no_longer_than_is_allowed_from_now() -> None:
    assert due_ms(b"5", NOW_MS + 10 * DAY_MS, DAY_MS, NOW_MS) == NOW_MS + DAY_MS


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_keys_and_times_are_read_by_offset(compression: Compression) -> None:
    records = [
        Record(0, NOW_MS, b"a", None, [("x", b"y"), (HEADER, b"5"), (HEADER, b"7")]),
        Record(0, NOW_MS, None, b"value"),
        Record(0, NOW_MS, b"a", b"value", [(HEADER, b"soon")]),
        Record(0, NOW_MS, b"b", b"value", [(HEADER, None)]),
    ]
    view = memoryview(build(records, base_offset=10, compression=compression))
    scanned = read_facts(view, 8, reading.scan(view, 100), HoldbackRules(HEADER, DAY_MS, True), NOW_MS)
    assert scanned.facts[:3] == (8, 13, [(10, 13)])
    assert scanned.facts.times == {10: NOW_MS + 7}
    keys = scanned.facts.keys
    assert sorted(keys) == [10, 12, 13]
    assert keys[10] == keys[12] != keys[13]
    assert (scanned.invalid_count, scanned.example) == (2, "None")


def test_a_batch_that_cannot_be_read_says_nothing() -> None:
    data = build([Record(0, NOW_MS, b"a", b"v")], compression=Compression.GZIP)
    data[-5:] = b"\xff\xff\xff\xff\xff"
    view = memoryview(data)
    facts = read_facts(view, 0, reading.scan(view, 100), HoldbackRules(HEADER, DAY_MS, True), NOW_MS).facts
    assert (facts.first, facts.last, facts.keys, facts.times) == (0, 0, {}, {})


def test_batches_of_which_nothing_was_acquired_are_left_out_if_that_saves_much() -> None:
    view = memoryview(b"".join(build([Record(0, 1, None, b"value")], base_offset=at) for at in range(10)))
    batches = reading.scan(view, 100)

    def bases(*ranges: tuple[int, int]) -> list[int]:
        records = reading.sparse(view, batches, [Acquired(*offsets, 1) for offsets in ranges])
        return [header.base_offset for _, header in batch.iter_batches(records)]

    assert bases((1, 1), (8, 8)) == [1, 8]
    assert bases((1, 1), (3, 3)) == [1, 2, 3]
    assert bases((0, 9)) == list(range(10))


# A whole broker.


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


@asynccontextmanager
async def scanning(directory: Path, **config: str) -> AsyncIterator[Fetching]:
    async with serving(directory) as fetching:
        await configure(fetching, share_auto_offset_reset="earliest", **config)
        yield fetching


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def append(fetching: Fetching, *records: Record, compression: Compression = Compression.NONE) -> None:
    data = build(records, compression=compression)
    fetching.broker.server.broker.replicas.partition("topic", 0).append(memoryview(data), now_ms())


def delayed(ms: int) -> Record:
    return Record(0, now_ms(), None, b"v", [(HEADER, str(ms).encode())])


def keyed(*keys: str) -> list[Record]:
    return [Record(0, 1, key.encode() if key else None, b"v") for key in keys]


async def test_a_delayed_record_comes_after_those_behind_it(directory: Path) -> None:
    async with scanning(directory, odradek_share_delivery_delay_header=HEADER) as fetching:
        record = delayed(2_000)
        append(fetching, record, delayed(0), *keyed("", ""))
        epoch, response = await eventually(fetching, 0)
        assert acquired(response) == [(1, 3, 1)]
        response = await fetching.fetch(epoch, (1, 3, ACCEPT), max_wait_ms=5_000)
        assert acquired(response) == [(0, 0, 1)]
        assert now_ms() >= record.timestamp + 2_000
        await fetching.fetch(epoch + 1, (0, 0, ACCEPT))
        (hosted,) = fetching.broker.server.broker.share_groups._hosted.values()
        assert hosted.machine.start_offset == 4


async def test_a_delay_that_is_not_understood_is_none_and_is_counted(directory: Path) -> None:
    async with scanning(directory, odradek_share_delivery_delay_header=HEADER) as fetching:
        append(fetching, Record(0, 1, None, b"v", [(HEADER, b"tomorrow")]), Record(0, 1, None, b"v", [(HEADER, None)]))
        _, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 1, 1)]
        (hosted,) = fetching.broker.server.broker.share_groups._hosted.values()
        assert hosted.scanner is not None
        assert hosted.scanner.invalid_count == 2


async def test_a_key_is_with_one_member_at_a_time(directory: Path) -> None:
    async with scanning(directory, odradek_share_order_by_key="true") as fetching:
        append(fetching, *keyed("a", "b", "a", "", "c"))
        epoch, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 4, 1)]
        append(fetching, *keyed("a", "d", ""))
        await fetching.fetch(epoch, (1, 4, ACCEPT), max_records=0)
        other = Fetching(fetching.broker, fetching.topic_id)
        response = await other.fetch(0, member_id="member-2")
        assert acquired(response) == [(6, 7, 1)]
        parked = asyncio.ensure_future(other.fetch(1, member_id="member-2", max_wait_ms=5_000))
        await asyncio.sleep(0)
        await fetching.fetch(epoch + 1, (0, 0, ACCEPT), max_records=0)
        assert acquired(await parked) == [(5, 5, 1)]


async def test_what_is_let_go_comes_again_before_later_records_of_its_key(directory: Path) -> None:
    async with scanning(directory, odradek_share_order_by_key="true") as fetching:
        append(fetching, *keyed("a", "b", "a", "b"))
        epoch, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 3, 1)]
        append(fetching, *keyed("a", "b"))
        await fetching.fetch(epoch, (0, 0, RELEASE), (1, 1, REJECT), (3, 3, ACCEPT), max_records=0)
        other = Fetching(fetching.broker, fetching.topic_id)
        assert acquired(await other.fetch(0, member_id="member-2")) == [(5, 5, 1)]
        assert acquired(await fetching.fetch(epoch + 1)) == [(0, 0, 2), (4, 4, 1)]


async def test_many_records_are_looked_into_by_a_thread(directory: Path) -> None:
    async with scanning(directory, odradek_share_order_by_key="true") as fetching:
        records = keyed(*(f"k{number % 10}" for number in range(record_scanner.FEW_RECORDS + 100)))
        append(fetching, *records, compression=Compression.GZIP)
        append(fetching, *keyed("k0", "k1"))
        epoch, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 499, 1)]
        _, response = await eventually(fetching, epoch)
        assert acquired(response) == [(500, 601, 1)]


async def test_a_batch_that_is_larger_than_all_room_is_taken_in_parts(directory: Path) -> None:
    async with scanning(
        directory, odradek_share_order_by_key="true", share_partition_max_record_locks="100"
    ) as fetching:
        append(fetching, *keyed(*"abcde" * 70), compression=Compression.GZIP)
        epoch = 0
        seen: list[int] = []
        while len(seen) < 350:
            epoch, response = await eventually(fetching, epoch)
            ranges = [(first, last) for first, last, _ in acquired(response)]
            seen += [offset for first, last in ranges for offset in range(first, last + 1)]
            await fetching.fetch(epoch, *((first, last, ACCEPT) for first, last in ranges), max_records=0)
            epoch += 1
        assert seen == list(range(350))


async def test_max_records_holds_in_either_mode(directory: Path) -> None:
    async with scanning(directory, odradek_share_order_by_key="true") as fetching:
        append(fetching, *keyed(*"abcabc"))
        epoch, _ = await eventually(fetching, 0)
        await fetching.fetch(epoch, (0, 5, RELEASE), max_records=0)
        for turn, mode in enumerate((0, 1)):
            response = await fetching.fetch(epoch + 1 + turn, max_records=2, share_acquire_mode=mode)
            assert acquired(response) == [(2 * turn, 2 * turn + 1, 2)]


async def test_options_that_are_set_and_unset_find_every_record(directory: Path) -> None:
    async with scanning(directory) as fetching:
        append(fetching, *keyed("a", "a"), delayed(60_000), *keyed("a"))
        epoch, response = await eventually(fetching, 0)
        assert acquired(response) == [(0, 3, 1)]
        await configure(fetching, odradek_share_delivery_delay_header=HEADER, odradek_share_order_by_key="true")
        append(fetching, *keyed("a", "b"), delayed(60_000))
        other = Fetching(fetching.broker, fetching.topic_id)
        assert acquired(await other.fetch(0, member_id="member-2")) == [(5, 5, 1)]
        await configure(fetching, odradek_share_delivery_delay_header="", odradek_share_order_by_key="false")
        assert acquired(await other.fetch(1, member_id="member-2")) == [(4, 4, 1), (6, 6, 1)]
        await fetching.fetch(epoch, (0, 3, ACCEPT))


async def test_a_rejected_record_frees_its_key_while_its_dead_letter_is_still_to_be_written(directory: Path) -> None:
    async with InProcess(directory, DLQ_OPTIONS) as broker, asyncio.timeout(LONG_S):
        fetching = await begin(broker)
        await configure(fetching, share_auto_offset_reset="earliest", odradek_share_order_by_key="true")
        append(fetching, *keyed("a"))
        epoch, _ = await eventually(fetching, 0)
        append(fetching, *keyed("a", "a"))
        (hosted,) = fetching.broker.server.broker.share_groups._hosted.values()
        await fetching.fetch(epoch, (0, 0, REJECT), max_records=0)
        assert acquired(await fetching.fetch(epoch + 1)) == [(1, 2, 1)]
        while hosted.machine.start_offset < 1:  # noqa: ASYNC110 (the letter is written in the loop)
            await asyncio.sleep(0)


class Engine:
    """A share partition whose records the test scans."""

    now_ms = staticmethod(now_ms)

    def __init__(self, config: dict[str, str]) -> None:
        self.partition = share_partition()
        self.woken = 0
        self.scanner = RecordScanner("name", self.partition, self.wake, cast(Clock, self), cast(Workers, self))
        self.scanner.configure(GroupConfig.parse(config))

    def wake(self) -> None:
        self.woken += 1

    async def call(self, work: Callable[[], object]) -> object:
        return await asyncio.to_thread(work)

    def scan(self, data: bytearray, *aborted: tuple[int, int]) -> None:
        view = memoryview(data)
        offset = self.scanner.fetch_offset("m1")
        assert offset is not None
        self.scanner.scan(view, offset, reading.scan(view, 1 << 30), aborted)


def test_records_of_an_aborted_transaction_hold_no_key() -> None:
    engine = Engine({"odradek.share.order.by.key": "true"})
    data = build(keyed("a", "b"), base_offset=0) + build(keyed("a", "b"), base_offset=2)
    engine.scan(data, (0, 1))
    assert states(engine.partition) == ["2-3 available 0"]
    assert engine.partition.start_offset == 2


async def test_what_is_read_in_a_thread_is_taken_in_unless_all_is_different_by_then() -> None:
    engine = Engine({"odradek.share.order.by.key": "true"})
    data = build(keyed(*"ab" * 400))
    engine.scan(data)
    assert engine.scanner.fetch_offset("m1") is None
    await until(lambda: engine.woken)
    assert engine.scanner.fetch_offset("m1") == 0
    assert engine.partition.end_offset == 799
    engine.scan(build(keyed(*"ab" * 400), base_offset=800))
    engine.scanner.configure(GroupConfig.parse({"odradek.share.delivery.delay.header": HEADER}))
    await until(lambda: engine.woken == 2)
    assert engine.partition.end_offset == 799
    engine.scanner.stop()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("odradek.share.order.by.key", "yes", "Expected value to be either true or false"),
        ("odradek.share.delivery.delay.max.ms", "-1", "Value must be at least 0"),
        ("odradek.share.delivery.delay.max.ms", "1h", "Not a number of type LONG"),
        ("odradek.share.delivery.delay.header", "h" * 256, "must have at most 255 printable characters"),
        ("odradek.share.delivery.delay.header", "a\tb", "printable characters"),
    ],
)
async def test_options_that_make_no_sense_are_refused(directory: Path, name: str, value: str, problem: str) -> None:
    async with scanning(directory) as fetching:
        change = AlterableConfig(name=name, config_operation=0, value=value)
        altered = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=False)
        response = await fetching.client.ask(request, 1, IncrementalAlterConfigsResponse)
        (answer,) = response.responses
        assert answer.error_code == INVALID_CONFIG
        assert problem in (answer.error_message or "")
