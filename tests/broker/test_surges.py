"""An address may make many connections at once, and so many a second for ever; nobody else is counted with it."""

from __future__ import annotations

from broker.clock import NS_PER_MS, NS_PER_S
from broker.config import BrokerConfig
from broker.network.surges import HEARD, HEARD_SECONDS, REMEMBERED, SECONDS, SERVED, Newcomer, Surges
from tests.broker.hand_clock import HandClock

RATE = 100
AT_ONCE = RATE * SECONDS
BRIEFLY = RATE * SERVED.loud_ns // NS_PER_S
HEARD_BRIEFLY = RATE * HEARD.loud_ns // NS_PER_S


class Lines:
    """The lines about connections that were turned away."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def turned_away(self, newcomer: Newcomer, reason: str) -> None:
        self.lines.append((newcomer.peer, reason))


def surges_of(clock: HandClock, lines: Lines | None = None, ignored: list[str] | None = None) -> Surges:
    config = BrokerConfig.parse({"odradek.connection.surge.rate.per.ip": str(RATE)})
    ignore = ([] if ignored is None else ignored).append
    return Surges(lambda: config, clock, lines or Lines(), ignore)  # type: ignore[arg-type]


def taken(surges: Surges, ip: str, count: int) -> int:
    return sum(surges.takes((ip, port)) for port in range(count))


def test_an_address_that_goes_on_making_connections_has_the_surplus_closed() -> None:
    clock, lines = HandClock(), Lines()
    surges = surges_of(clock, lines)
    assert taken(surges, "10.0.0.1", 2 * AT_ONCE) == AT_ONCE
    assert lines.lines[0] == (
        f"10.0.0.1:{AT_ONCE}",
        f"{RATE} connections a second are the most that its address may make",
    )
    assert len(surges) == 1


def test_as_long_as_it_goes_on_it_has_its_rate_and_no_more_than_a_little_at_once() -> None:
    clock = HandClock()
    surges = surges_of(clock)
    taken(surges, "10.0.0.1", AT_ONCE + 1)
    for _ in range(5):
        clock.pass_ms(1_000)
        assert taken(surges, "10.0.0.1", 2 * RATE) == BRIEFLY, "those that were closed are not held against it"
    clock.pass_ms(1_000)
    smoothly = 0
    for _ in range(2 * RATE):
        clock.pass_ms(500 / RATE)
        smoothly += taken(surges, "10.0.0.1", 1)
    assert RATE <= smoothly <= RATE + BRIEFLY


def test_who_has_been_calm_has_its_former_limits() -> None:
    clock = HandClock()
    surges = surges_of(clock)
    taken(surges, "10.0.0.1", AT_ONCE + 1)
    for _ in range(SERVED.until_calm_ns // NS_PER_S):
        clock.pass_ms(1_000)
        assert taken(surges, "10.0.0.1", 1) == 1
    assert taken(surges, "10.0.0.1", 2 * AT_ONCE) >= AT_ONCE - 1


def test_at_one_connection_a_second_one_may_come_each_second() -> None:
    clock = HandClock()
    config = BrokerConfig.parse({"odradek.connection.surge.rate.per.ip": "1"})
    surges = Surges(lambda: config, clock, Lines())  # type: ignore[arg-type]
    assert taken(surges, "10.0.0.1", 2 * SECONDS) == SECONDS
    for _ in range(3):
        clock.pass_ms(1_000)
        assert taken(surges, "10.0.0.1", 5) == 1


def test_who_makes_too_many_is_not_heard_for_a_moment_before_any_is_closed() -> None:
    ignored: list[str] = []
    surges = surges_of(HandClock(), ignored=ignored)
    taken(surges, "10.0.0.2", 1)
    assert taken(surges, "10.0.0.1", RATE * HEARD_SECONDS) == RATE * HEARD_SECONDS
    assert ignored == []
    assert taken(surges, "10.0.0.1", 1) == 1
    assert ignored == ["10.0.0.1"]


def test_who_was_not_heard_is_heard_less_until_it_is_calm() -> None:
    ignored: list[str] = []
    clock = HandClock()
    surges = surges_of(clock, ignored=ignored)
    taken(surges, "10.0.0.1", RATE * HEARD_SECONDS + 1)
    for _ in range(3):
        clock.pass_ms(1_500)
        ignored.clear()
        assert taken(surges, "10.0.0.1", RATE // 2) == RATE // 2
        assert len(ignored) == RATE // 2 - HEARD_BRIEFLY
    clock.pass_ms(HEARD.until_calm_ns // NS_PER_MS)
    ignored.clear()
    taken(surges, "10.0.0.1", RATE * HEARD_SECONDS)
    assert ignored == []


def test_who_has_one_closed_is_not_heard_for_a_moment() -> None:
    ignored: list[str] = []
    clock = HandClock()
    surges = surges_of(clock, ignored=ignored)
    taken(surges, "10.0.0.1", AT_ONCE + 1)
    clock.pass_ms(HEARD.until_calm_ns // NS_PER_MS)
    ignored.clear()
    assert taken(surges, "10.0.0.1", BRIEFLY) == BRIEFLY
    assert ignored == []
    assert taken(surges, "10.0.0.1", 1) == 0
    assert ignored == ["10.0.0.1"]


def test_nobody_else_is_counted_with_it() -> None:
    surges = surges_of(HandClock())
    taken(surges, "10.0.0.1", 2 * AT_ONCE)
    assert taken(surges, "10.0.0.2", AT_ONCE) == AT_ONCE
    assert taken(surges, "::1", 1) == 1


def test_who_has_waited_may_make_as_many_at_once_as_before() -> None:
    clock = HandClock()
    surges = surges_of(clock)
    taken(surges, "10.0.0.1", AT_ONCE)
    clock.pass_ms(SECONDS * 1_000)
    assert taken(surges, "10.0.0.1", 2 * AT_ONCE) == AT_ONCE


def test_addresses_without_number_are_forgotten() -> None:
    clock = HandClock()
    surges = surges_of(clock)
    for number in range(3 * REMEMBERED):
        clock.pass_ms(0.1)
        assert surges.takes((f"2001:db8::{number:x}", 1, 0, 0))
    assert len(surges) < 1.2 * REMEMBERED
