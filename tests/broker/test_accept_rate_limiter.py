"""Tests the limits on an address's connections: a burst at once, and a rate per second; each address has its own
limit."""

from __future__ import annotations

from typing import Any

from broker.clock import NS_PER_MS, NS_PER_S
from broker.config import BrokerConfig
from broker.network.accept_rate_limiter import (
    ACCEPT,
    BLOCK,
    BURST_SECONDS,
    REMEMBERED,
    UNBLOCKED_SECONDS,
    AcceptRateLimiter,
)
from tests.clock import ManualClock

RATE = 100
AT_ONCE = RATE * BURST_SECONDS
BRIEFLY = RATE * ACCEPT.reduced_ns // NS_PER_S
UNBLOCKED_BRIEFLY = RATE * BLOCK.reduced_ns // NS_PER_S


class Lines:
    """The log lines about rejected connections."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def rejected(self, ip: str, peer: str, reason: str) -> None:
        self.lines.append((peer, reason))


def limiter_of(clock: ManualClock, lines: Lines | None = None, blocked: list[str] | None = None) -> AcceptRateLimiter:
    config = BrokerConfig.parse({"odradek.connection.surge.rate.per.ip": str(RATE)})
    told: Any = lines or Lines()
    return AcceptRateLimiter(lambda: config, clock, told, ([] if blocked is None else blocked).append)


def taken(limiter: AcceptRateLimiter, ip: str, count: int) -> int:
    return sum(limiter.accepts((ip, port)) for port in range(count))


def test_an_address_that_goes_on_making_connections_has_the_surplus_closed() -> None:
    clock, lines = ManualClock(0), Lines()
    limiter = limiter_of(clock, lines)
    assert taken(limiter, "10.0.0.1", 2 * AT_ONCE) == AT_ONCE
    assert lines.lines[0] == (
        f"10.0.0.1:{AT_ONCE}",
        f"{RATE} connections a second are the most that its address may make",
    )
    assert len(limiter) == 1


def test_as_long_as_it_goes_on_it_has_its_rate_and_no_more_than_a_little_at_once() -> None:
    clock = ManualClock(0)
    limiter = limiter_of(clock)
    taken(limiter, "10.0.0.1", AT_ONCE + 1)
    for _ in range(5):
        clock.advance(1_000)
        assert taken(limiter, "10.0.0.1", 2 * RATE) == BRIEFLY, "those that were closed are not held against it"
    clock.advance(1_000)
    smoothly = 0
    for _ in range(2 * RATE):
        clock.advance(500 / RATE)
        smoothly += taken(limiter, "10.0.0.1", 1)
    assert RATE <= smoothly <= RATE + BRIEFLY


def test_who_has_been_calm_has_its_former_limits() -> None:
    clock = ManualClock(0)
    limiter = limiter_of(clock)
    taken(limiter, "10.0.0.1", AT_ONCE + 1)
    for _ in range(ACCEPT.reduced_for_ns // NS_PER_S):
        clock.advance(1_000)
        assert taken(limiter, "10.0.0.1", 1) == 1
    assert taken(limiter, "10.0.0.1", 2 * AT_ONCE) >= AT_ONCE - 1


def test_at_one_connection_a_second_one_may_come_each_second() -> None:
    clock = ManualClock(0)
    config = BrokerConfig.parse({"odradek.connection.surge.rate.per.ip": "1"})
    lines: Any = Lines()
    limiter = AcceptRateLimiter(lambda: config, clock, lines, list[str]().append)
    assert taken(limiter, "10.0.0.1", 2 * BURST_SECONDS) == BURST_SECONDS
    for _ in range(3):
        clock.advance(1_000)
        assert taken(limiter, "10.0.0.1", 5) == 1


def test_who_makes_too_many_is_not_heard_for_a_moment_before_any_is_closed() -> None:
    blocked: list[str] = []
    limiter = limiter_of(ManualClock(0), blocked=blocked)
    taken(limiter, "10.0.0.2", 1)
    assert taken(limiter, "10.0.0.1", RATE * UNBLOCKED_SECONDS) == RATE * UNBLOCKED_SECONDS
    assert blocked == []
    assert taken(limiter, "10.0.0.1", 1) == 1
    assert blocked == ["10.0.0.1"]


def test_who_was_not_heard_is_heard_less_until_it_is_calm() -> None:
    blocked: list[str] = []
    clock = ManualClock(0)
    limiter = limiter_of(clock, blocked=blocked)
    taken(limiter, "10.0.0.1", RATE * UNBLOCKED_SECONDS + 1)
    for _ in range(3):
        clock.advance(1_500)
        blocked.clear()
        assert taken(limiter, "10.0.0.1", RATE // 2) == RATE // 2
        assert len(blocked) == RATE // 2 - UNBLOCKED_BRIEFLY
    clock.advance(BLOCK.reduced_for_ns // NS_PER_MS)
    blocked.clear()
    taken(limiter, "10.0.0.1", RATE * UNBLOCKED_SECONDS)
    assert blocked == []


def test_who_has_one_closed_is_not_heard_for_a_moment() -> None:
    blocked: list[str] = []
    clock = ManualClock(0)
    limiter = limiter_of(clock, blocked=blocked)
    taken(limiter, "10.0.0.1", AT_ONCE + 1)
    clock.advance(BLOCK.reduced_for_ns // NS_PER_MS)
    blocked.clear()
    assert taken(limiter, "10.0.0.1", BRIEFLY) == BRIEFLY
    assert blocked == []
    assert taken(limiter, "10.0.0.1", 1) == 0
    assert blocked == ["10.0.0.1"]


def test_nobody_else_is_counted_with_it() -> None:
    limiter = limiter_of(ManualClock(0))
    taken(limiter, "10.0.0.1", 2 * AT_ONCE)
    assert taken(limiter, "10.0.0.2", AT_ONCE) == AT_ONCE
    assert taken(limiter, "::1", 1) == 1


def test_who_has_waited_may_make_as_many_at_once_as_before() -> None:
    clock = ManualClock(0)
    limiter = limiter_of(clock)
    taken(limiter, "10.0.0.1", AT_ONCE)
    clock.advance(BURST_SECONDS * 1_000)
    assert taken(limiter, "10.0.0.1", 2 * AT_ONCE) == AT_ONCE


def test_addresses_without_number_are_forgotten() -> None:
    clock = ManualClock(0)
    limiter = limiter_of(clock)
    for number in range(3 * REMEMBERED):
        clock.advance(0.1)
        assert limiter.accepts((f"2001:db8::{number:x}", 1, 0, 0))
    assert len(limiter) < 1.2 * REMEMBERED
