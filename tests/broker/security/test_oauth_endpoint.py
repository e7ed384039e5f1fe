"""Tests an issuer's keys at a URL: fetched, fetched again, missing, and unavailable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.clock import Clock
from broker.security.oauth.endpoint import (
    MIN_PAUSE_MS,
    MISSING_KEYS,
    MISSING_MS,
    JwksEndpoint,
    RefreshTimes,
)
from tests.broker.security.issuer import ec_key, jwk, jwks
from tests.clock import ManualClock

TIMES = RefreshTimes(refresh_ms=3_600_000, retry_ms=100, retry_max_ms=1_000)


class AtOnce:
    """Threads that run their work at once."""

    is_open = True

    def run(self, work: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
        assert self.is_open
        try:
            work()
        except Exception as error:
            then(error)
        else:
            then(None)

    def abandon(self) -> None:
        self.is_open = False


class Source:
    """Returns its keys, or fails."""

    def __init__(self, *kids: str) -> None:
        self.kids = kids
        self.asked_ms: list[int] = []
        self.clock = ManualClock(0)
        self.error: Exception | None = None

    def __call__(self) -> bytes:
        self.asked_ms.append(self.clock.now_ms())
        if self.error is not None:
            raise self.error
        return jwks(*(jwk(ec_key(), kid) for kid in self.kids))


def begun(source: Source, times: RefreshTimes = TIMES) -> JwksEndpoint:
    clock: Clock = source.clock
    endpoint = JwksEndpoint(source, AtOnce(), clock, times, "L")
    endpoint.begin()
    return endpoint


def kids(endpoint: JwksEndpoint) -> set[str]:
    assert endpoint.keys is not None
    return set(endpoint.keys.kids)


def test_keys_are_fetched_at_once_and_at_intervals() -> None:
    source = Source("one")
    endpoint = begun(source)
    assert kids(endpoint) == {"one"}
    source.kids = ("two",)
    source.clock.advance(3_599_999)
    assert kids(endpoint) == {"one"}
    source.clock.advance(1)
    assert kids(endpoint) == {"two"}
    assert source.asked_ms == [0, 3_600_000]


def test_a_missing_key_is_looked_for_once_in_a_while() -> None:
    source = Source("one")
    endpoint = begun(source)
    source.clock.advance(10_000)
    for _ in range(100):
        endpoint.miss("two")
    assert source.asked_ms == [0, 10_000]
    source.clock.advance(MISSING_MS - 1)
    endpoint.miss("two")
    assert len(source.asked_ms) == 2
    source.clock.advance(1)
    source.kids = ("one", "two")
    endpoint.miss("two")
    assert kids(endpoint) == {"one", "two"}


def test_made_up_keys_do_not_have_the_issuer_asked_all_the_time() -> None:
    source = Source("one")
    endpoint = begun(source)
    source.clock.advance(10_000)
    for number in range(1_000):
        endpoint.miss(f"made-up-{number}")
        source.clock.advance(10)
    assert len(source.asked_ms) == 1 + 10_000 // MIN_PAUSE_MS
    endpoint.miss("x" * 1_001)
    source.clock.advance(MIN_PAUSE_MS)
    endpoint.miss("x" * 1_001)
    assert len(source.asked_ms) == 1 + 10_000 // MIN_PAUSE_MS
    for number in range(100):
        source.clock.advance(MIN_PAUSE_MS)
        endpoint.miss(f"slowly-{number}")
    assert len(endpoint._missing) == MISSING_KEYS


def test_the_next_fetch_is_counted_from_the_last() -> None:
    source = Source("one")
    endpoint = begun(source)
    source.clock.advance(3_000_000)
    endpoint.miss("two")
    source.clock.advance(3_599_999)
    assert source.asked_ms == [0, 3_000_000]
    source.clock.advance(1)
    assert source.asked_ms == [0, 3_000_000, 6_600_000]


@pytest.mark.parametrize("error", [OSError("refused"), ValueError("?"), TimeoutError()])
def test_a_fetch_that_fails_is_repeated_with_pauses_that_double(error: Exception) -> None:
    source = Source("one")
    source.error = error
    endpoint = begun(source)
    source.clock.advance(1_000)
    assert source.asked_ms == [0, 100, 300, 700, 1_000]
    assert endpoint.keys is None
    source.clock.advance(1_000)
    assert source.asked_ms[5:] == [2_000]
    source.error = None
    source.clock.advance(100)
    assert kids(endpoint) == {"one"}


def test_keys_hold_while_the_issuer_fails() -> None:
    source = Source("one")
    endpoint = begun(source)
    source.error = OSError("away")
    source.clock.advance(3_600_000 + 2_000)
    assert kids(endpoint) == {"one"}
    assert len(source.asked_ms) == 6
    source.error, source.kids = None, ()
    source.clock.advance(3_600_000)
    assert kids(endpoint) == {"one"}


def test_without_a_pause_the_issuer_is_not_asked_without_end() -> None:
    source = Source()
    begun(source, RefreshTimes(refresh_ms=1, retry_ms=0, retry_max_ms=0))
    source.clock.advance(10_000)
    assert len(source.asked_ms) <= 11


def test_nothing_is_fetched_after_the_end() -> None:
    source = Source("one")
    endpoint = begun(source)
    endpoint.close()
    endpoint.miss("two")
    source.clock.advance(10_000_000)
    assert source.asked_ms == [0]
