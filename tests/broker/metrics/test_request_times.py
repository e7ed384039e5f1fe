"""Tests that requests are counted, a sample of them is timed, and slow requests are logged with the parts of their
time."""

from __future__ import annotations

from pathlib import Path

from broker.clock import NS_PER_MS, SystemClock
from broker.request.context import ClientConnection, Context
from broker.request.request_times import SAMPLES, ApiTimes, RequestTimes, parts
from protocol.api_key import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.inprocess import InProcess
from tests.log_lines import Line, problems

MS = NS_PER_MS


def context(
    key: ApiKey = ApiKey.PRODUCE, *, received_ms: int = 0, begun_ms: int = 0, parked_ms: int = 0, client_id: str = "c"
) -> Context:
    connection = ClientConnection("PLAINTEXT", lambda _, answer: answer)
    connection.received_ns, connection.begun_ns = received_ms * MS, begun_ms * MS
    request = Context(connection, key, 9, 1, client_id, 100)
    request.parked_ns = parked_ms * MS
    return request


def test_the_time_of_a_request_has_three_parts() -> None:
    waited = context(received_ms=10, begun_ms=13, parked_ms=15)
    assert parts(waited, 25 * MS) == (3 * MS, 2 * MS, 10 * MS)


def test_a_request_that_neither_queued_nor_waited_was_at_work() -> None:
    assert parts(context(received_ms=10), 25 * MS) == (0, 15 * MS, 0)


def test_an_earlier_request_that_had_queued_does_not_count_for_a_later_one() -> None:
    assert parts(context(received_ms=10, begun_ms=5), 25 * MS)[0] == 0


def test_every_request_of_a_quiet_api_is_timed() -> None:
    times = ApiTimes()
    for now_ms in range(1_000, 11_000, 100):
        assert times.is_due(now_ms * MS)
        times.add(context(received_ms=now_ms), now_ms * MS)
    assert len(times.total.values) == 100


def test_of_a_busy_api_the_samples_are_half_a_minutes() -> None:
    times, timed = ApiTimes(), 0
    for now_us in range(1_000_000, 61_000_000, 500):  # two thousand a second
        if times.is_due(now_us * 1000):
            times.add(context(), now_us * 1000)
            timed += 1
    assert 15 * 60 <= timed <= 65 * 60, "between sixteen and sixty-four milliseconds apart, about"
    assert len(times.total.values) == SAMPLES


def test_an_api_that_was_busy_is_timed_soon_after_it_is_not() -> None:
    times = ApiTimes()
    for now_us in range(1_000_000, 10_000_000, 100):
        if times.is_due(now_us * 1000):
            times.add(context(), now_us * 1000)
    assert times.is_due(10_300 * MS)


def test_a_follower_counts_apart() -> None:
    times = RequestTimes(SystemClock())
    request = context(ApiKey.FETCH)
    times.answered(request)
    assert times.counts[ApiKey.FETCH] == 1
    assert times.times(ApiKey.FETCH) is None, "nobody reads the times"


async def test_a_slow_request_is_told_with_where_its_time_went(tmp_path: Path, logged: list[Line]) -> None:
    async with InProcess(tmp_path, {"odradek.slow.request.ms": "500"}) as broker:
        times = broker.server.broker.interceptors.times
        assert times.slow_ns == 500 * MS
        times.on_slow(context(received_ms=1, begun_ms=3, parked_ms=5, client_id="x" * 1000), 812 * MS)
        (line,) = problems(logged)
        assert (line.event, line.fields["api"], line.fields["client_id"]) == ("slow request", "PRODUCE", "x" * 200)
        times_ms = [line.fields[f"{part}_ms"] for part in ("total", "queue", "local", "remote")]
        assert times_ms == [811.0, 2.0, 2.0, 807.0]


async def test_a_fetch_that_waits_as_it_was_asked_to_is_not_slow(tmp_path: Path, logged: list[Line]) -> None:
    async with InProcess(tmp_path, {"odradek.slow.request.ms": "500"}) as broker:
        times = broker.server.broker.interceptors.times
        times.on_slow(context(ApiKey.FETCH, received_ms=1, parked_ms=5), 812 * MS)
        assert not problems(logged)
        times.on_slow(context(ApiKey.FETCH, received_ms=1, parked_ms=602), 812 * MS)
        assert len(problems(logged)) == 1


async def test_every_answer_is_looked_at_by_the_clock(tmp_path: Path, logged: list[Line]) -> None:
    async with InProcess(tmp_path, {"odradek.slow.request.ms": "0"}) as broker:
        await broker.client().ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        assert not problems(logged), "0 is off, too"
        broker.server.broker.interceptors.times.slow_ns = 1
        await broker.client().ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        assert [line.fields["api"] for line in problems(logged)] == ["API_VERSIONS"]
