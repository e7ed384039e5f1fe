"""Tests which logins are remembered, and for how long."""

from __future__ import annotations

from client.address import Address
from commands.client.connecting import Destination
from console.visitors import MAX_IDLE_MS, MAX_VISITORS, Visitors
from console.watching import WatchedCluster


class Drawn:
    """Different bytes at each draw."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, length: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(length, "big")


class Now:
    """A clock that a test sets."""

    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def cluster() -> WatchedCluster:
    return WatchedCluster(Destination((Address("127.0.0.1", 1),), 1000))


async def test_a_login_is_known_by_its_secret() -> None:
    visitors, shared = Visitors(Now(), Drawn()), cluster()
    (first, _), (second, _) = visitors.add("ana", shared), visitors.add("bob", shared)
    assert first != second
    known = visitors.find(second)
    assert known is not None
    assert known.user == "bob"
    assert visitors.find("") is None
    assert visitors.find("0" * 64) is None


async def test_a_login_that_is_idle_for_too_long_is_over() -> None:
    now = Now()
    visitors = Visitors(now, Drawn())
    key, _ = visitors.add("ana", cluster())
    now.now_ms = MAX_IDLE_MS
    assert visitors.find(key) is not None
    now.now_ms = 2 * MAX_IDLE_MS + 1
    assert visitors.find(key) is None
    assert visitors.find(key) is None


async def test_the_login_that_was_idle_longest_makes_room() -> None:
    visitors, shared = Visitors(Now(), Drawn()), cluster()
    keys = [visitors.add(f"user-{number}", shared)[0] for number in range(MAX_VISITORS)]
    assert visitors.find(keys[0]) is not None
    _, forgotten = visitors.add("last", shared)
    assert [visitor.user for visitor in forgotten] == ["user-1"]
    assert forgotten[0].is_out
    assert len(visitors.everyone()) == MAX_VISITORS


async def test_a_notice_is_shown_once() -> None:
    visitors = Visitors(Now(), Drawn())
    key, _ = visitors.add("ana", cluster())
    visitor = visitors.find(key)
    assert visitor is not None
    visitor.notice = "done"
    assert [visitor.take_notice(), visitor.take_notice()] == ["done", ""]
