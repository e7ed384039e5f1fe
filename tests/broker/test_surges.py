"""An address may make many connections at once, and so many a second for ever; nobody else is counted with it."""

from __future__ import annotations

from broker.config import BrokerConfig
from broker.network.surges import REMEMBERED, SECONDS, Newcomer, Surges
from tests.broker.hand_clock import HandClock

RATE = 100
AT_ONCE = RATE * SECONDS


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
        f"{RATE} connections a second are all that its address may go on making",
    )
    for _ in range(5):
        clock.pass_ms(1_000)
        assert taken(surges, "10.0.0.1", 2 * RATE) == RATE, "those that were closed are not held against it"


def test_who_has_one_closed_is_not_heard_for_a_moment() -> None:
    ignored: list[str] = []
    surges = surges_of(HandClock(), ignored=ignored)
    taken(surges, "10.0.0.2", 1)
    taken(surges, "10.0.0.1", AT_ONCE)
    assert ignored == []
    taken(surges, "10.0.0.1", 1)
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
