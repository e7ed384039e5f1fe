"""Tests the parts of requests' times, the conversions for old clients, and the log lines about slow requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from broker.clock import NS_PER_MS
from broker.metrics.fetchers import FollowedRow, follower_families
from broker.metrics.loop_watch import LoopWatch
from broker.metrics.sending import MOST_PAUSES, Look
from broker.request.context import ClientConnection
from broker.request.log_limiter import LINES_OF_ADDRESS
from broker.request.request_times import ApiTimes
from protocol.messages.fetch import FetchResponse
from protocol.records.legacy import down_convert
from tests.broker.asking import batch, fetch_request, produce
from tests.broker.inprocess import InProcess
from tests.broker.metrics.scraping import OPTIONS, scraped
from tests.broker.metrics.test_request_times import context
from tests.clock import ManualClock
from tests.log_lines import Line, problems

OLD_PRODUCE, OLD_FETCH = 2, 3


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with InProcess(tmp_path, OPTIONS) as broker:
        yield broker


async def test_records_that_old_clients_write_and_read_are_counted(broker: InProcess) -> None:
    await broker.create_topic("t")
    client = broker.client()
    messages = bytes(down_convert(memoryview(batch(b"a", b"b")), 1, first_offset=0))
    assert (await produce(client, "t", messages, version=OLD_PRODUCE)).error_code == 0
    assert (await produce(client, "t", batch(b"c"))).error_code == 0
    await client.ask(fetch_request("t"), OLD_FETCH, FetchResponse)
    values = await scraped(broker)
    for labels in ("{}", "{topic=t}"):
        assert values[f"kafka_server_brokertopicmetrics_producemessageconversions_total{labels}"] == 2
        assert values[f"kafka_server_brokertopicmetrics_fetchmessageconversions_total{labels}"] == 3


async def test_every_part_of_a_requests_time_is_told(broker: InProcess) -> None:
    await broker.create_topic("t")
    await produce(broker.client(), "t", batch(b"a"))
    values = await scraped(broker)
    for part in ("total", "requestqueue", "local", "remote", "responsequeue", "responsesend"):
        name = f"kafka_network_requestmetrics_{part}timems"
        assert values[f"{name}_count{{request=Produce}}"] == 1
        assert values[f"{name}{{quantile=0.99,request=Produce}}"] >= 0


class Transport:
    """A transport whose bytes are sent after a number of checks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def get_write_buffer_size(self) -> int:
        self.looks -= 1
        return 100 if self.looks > 0 else 0


class Connection:
    """A connection with a socket."""

    closed = False

    def __init__(self, transport: Transport) -> None:
        self.transport = transport


def sent(looks: int) -> tuple[int, int]:
    """Returns the time in milliseconds until an answer was sent, and the number of checks."""
    clock, times = ManualClock(0), ApiTimes()
    place = times.add(context(), 0)
    Look(clock, cast(ClientConnection, Connection(Transport(looks))), times, place, 0)()
    count = 1
    while clock.timers:
        clock.advance(clock.timers[0].when_ms - clock.time_ms)
        count += 1
    return times.send.values[place] // NS_PER_MS, count


def test_an_answer_that_goes_out_at_once_takes_no_time() -> None:
    assert sent(looks=1) == (0, 1)


def test_an_answer_that_its_peer_does_not_take_is_looked_at_less_and_less() -> None:
    assert sent(looks=5) == (1 + 2 + 4 + 8, 5)
    took_ms, looks = sent(looks=1_000_000)
    assert took_ms == (1 << MOST_PAUSES) - 1
    assert looks == MOST_PAUSES + 1


async def test_a_minute_later_an_address_has_slow_requests_told_again(tmp_path: Path, logged: list[Line]) -> None:
    async with InProcess(tmp_path, {"odradek.slow.request.ms": "500"}) as broker:
        slow = context(received_ms=1)
        noted = broker.server.broker.interceptors.times.on_slow
        limiter = broker.server.broker.limited_lines["slow requests without a line"]
        for _ in range(LINES_OF_ADDRESS + 3):
            noted(slow, 812 * NS_PER_MS)
        assert not limiter.allows(slow.connection.ip)
        broker.server.housekeeping.log_suppressed_lines()
        line = problems(logged)[-1]
        assert (line.event, line.fields["count"]) == ("slow requests without a line", 4)
        assert limiter.allows(slow.connection.ip)


async def test_a_loop_that_was_held_up_for_a_second_is_told(logged: list[Line]) -> None:
    clock = ManualClock()
    watch = LoopWatch(clock)
    watch.start()
    for late_ms in (0, 999, 1_500):
        clock.time_ms = clock.timers[0].when_ms + late_ms
        clock.ring()
    assert [line.fields["late_ms"] for line in problems(logged)] == [1_500]


def test_the_worst_replica_is_told_and_those_that_gave_up() -> None:
    rows = [FollowedRow("{a}", 3, False), FollowedRow("{b}", None, True), FollowedRow("{c}", 0, True)]
    worst, failed, lags = [list(family.samples) for family in follower_families(rows)]
    assert [value for _, value in worst] == [3]
    assert [value for _, value in failed] == [2]
    assert lags == [("{a}", 3), ("{c}", 0)], "of the second its leader has said nothing yet"
