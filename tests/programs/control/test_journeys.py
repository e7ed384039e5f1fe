"""Tests that the effects of time on a broker occur when its clock is advanced, and not earlier."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.messages.fetch import FetchResponse
from tests.broker.asking import FETCH_VERSION, batch, fetch_request, produce
from tests.broker.inprocess import request_frame
from tests.broker.share.test_share_fetch import OPTIONS as SHARE_OPTIONS
from tests.broker.share.test_share_fetch import Fetching
from tests.programs.control.controlled import Controlled, on_a_journey
from tests.programs.control.grouping import GROUP, SESSION_MS, committed, joined

TOPIC = "orders"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
LOCK_MS = 30_000
"""The default of group.share.record.lock.duration.ms."""
OPTIONS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


def now_ms(broker: Controlled) -> int:
    return broker.server.broker.clock.now_ms()


def deleted_files(directory: Path) -> list[Path]:
    """Returns the files of deleted segments that still exist."""
    return list(directory.glob(f"{TOPIC}-0/*.deleted"))


async def advance(broker: Controlled, distance_ms: int) -> None:
    before = (await broker.get("/v1/clock"))["travelled_ms"]
    after = await broker.post("/v1/clock", advance_ms=distance_ms)
    assert after["travelled_ms"] - before == distance_ms


def test_a_week_of_retention_passes_and_the_files_go(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        await broker.create_topic(TOPIC, retention_ms=str(WEEK_MS))
        client = broker.client()
        await produce(client, TOPIC, batch(b"old", timestamp=now_ms(broker)))
        await advance(broker, WEEK_MS - HOUR_MS)
        assert len((await broker.get(f"/v1/records?topic={TOPIC}"))["records"]) == 1
        await advance(broker, HOUR_MS + 1)
        shown = await broker.get(f"/v1/records?topic={TOPIC}")
        assert (shown["records"], shown["partitions"][0]["start_offset"]) == ([], 1)
        assert deleted_files(tmp_path)
        await advance(broker, 120_000)
        assert not deleted_files(tmp_path)

    on_a_journey(tmp_path, OPTIONS, main)


def test_a_fetch_waits_for_as_long_as_it_wanted(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        await broker.create_topic(TOPIC)
        client = broker.client()
        client.send(request_frame(fetch_request(TOPIC, max_wait_ms=60_000), FETCH_VERSION))
        await advance(broker, 50_000)
        assert not client.wire.sent
        await advance(broker, 11_000)
        assert len(client.wire.take()) == 1

    on_a_journey(tmp_path, OPTIONS, main)


def test_a_member_s_session_ends_and_offsets_expire(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        await broker.create_topic(TOPIC)
        client = broker.client()
        await committed(client, TOPIC, 0, await joined(client, TOPIC))
        await advance(broker, SESSION_MS // 2)
        assert (await broker.get(f"/v1/groups/{GROUP}"))["state"] == "Stable"
        await advance(broker, SESSION_MS)
        group = await broker.get(f"/v1/groups/{GROUP}")
        assert (group["state"], group["members"], len(group["offsets"])) == ("Empty", [], 1)
        await advance(broker, 6 * DAY_MS)
        assert len((await broker.get(f"/v1/groups/{GROUP}"))["offsets"]) == 1
        await advance(broker, 2 * DAY_MS)
        assert await broker.get("/v1/groups") == {"groups": []}

    on_a_journey(tmp_path, OPTIONS, main)


def test_a_connection_of_which_nothing_comes_is_closed(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        await broker.create_topic(TOPIC)
        client = broker.client()
        await client.ask(fetch_request(TOPIC), FETCH_VERSION, FetchResponse)
        await advance(broker, HOUR_MS)
        assert client.wire.closing

    on_a_journey(tmp_path, {**OPTIONS, "connections.max.idle.ms": "600000"}, main)


def test_a_fault_s_delay_is_of_the_broker_s_time(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        await broker.create_topic(TOPIC)
        client = broker.client()
        await broker.fault(api="Fetch", delay_ms=2 * HOUR_MS)
        client.send(request_frame(fetch_request(TOPIC), FETCH_VERSION))
        await advance(broker, HOUR_MS)
        assert not client.wire.sent
        await advance(broker, HOUR_MS)
        assert len(client.wire.take()) == 1

    on_a_journey(tmp_path, OPTIONS, main)


@pytest.mark.parametrize("distance_ms", [0, 1, 100 * 365 * DAY_MS])
def test_any_distance_is_travelled(tmp_path: Path, distance_ms: int) -> None:
    async def main(broker: Controlled) -> None:
        await advance(broker, distance_ms)

    on_a_journey(tmp_path, OPTIONS, main)


def test_records_whose_lock_has_ended_are_offered_again(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        fetching = await Fetching.begin(broker)
        fetching.append(3)
        counts = []
        for epoch in range(2):
            answer = await fetching.fetch(epoch, max_wait_ms=1000)
            (acquired,) = answer.responses[0].partitions[0].acquired_records
            counts.append((acquired.first_offset, acquired.last_offset, acquired.delivery_count))
            await advance(broker, LOCK_MS + 1)
        assert counts == [(0, 2, 1), (0, 2, 2)]

    on_a_journey(tmp_path, {**SHARE_OPTIONS, "log.retention.ms": "-1"}, main)  # its records are of 1970


def test_a_request_that_comes_on_the_way_is_answered_at_the_end(tmp_path: Path) -> None:
    async def main(broker: Controlled) -> None:
        await broker.create_topic(TOPIC)
        client, clock = broker.client(), broker.server.broker.clock
        sent: list[bool] = []
        clock.call_after(10_000, lambda: client.send(request_frame(fetch_request(TOPIC), FETCH_VERSION)))
        clock.call_after(60_000, lambda: sent.append(bool(client.wire.sent)))
        await advance(broker, HOUR_MS)
        assert len(await client.frames(1)) == 1
        assert sent == [False]

    on_a_journey(tmp_path, OPTIONS, main)
