"""Tests the log lines about connections: limited by address and in total, and suppressed lines are counted."""

from __future__ import annotations

from typing import Any

import pytest

from broker.network.connection_lines import ConnectionLines
from broker.request.log_limiter import LINES, LINES_OF_ADDRESS, LogLimiter
from protocol.errors import ProtocolError
from tests.log_lines import Line


def test_an_address_has_so_many_lines_and_leaves_others_theirs() -> None:
    lines = LogLimiter()
    assert [lines.allows("a") for _ in range(LINES_OF_ADDRESS + 1)] == [True] * LINES_OF_ADDRESS + [False]
    assert lines.allows("b")


def test_all_addresses_together_have_so_many() -> None:
    lines = LogLimiter()
    assert sum(lines.allows(f"10.0.{number}") for number in range(3 * LINES)) == LINES


def test_what_was_left_out_is_told_and_another_interval_begins() -> None:
    lines = LogLimiter()
    for _ in range(LINES_OF_ADDRESS + 7):
        lines.allows("a")
    assert lines.begin_interval() == {"count": 7, "most_of": "a", "of_it": 7}
    assert lines.allows("a")
    assert lines.begin_interval() == {}


def test_counting_takes_no_memory_for_each_address() -> None:
    lines = LogLimiter()
    for number in range(10 * LINES):
        lines.allows(f"10.0.{number}")
    assert lines.begin_interval()["count"] == 9 * LINES


class Peer:
    """The part of a connection that the log lines need."""

    ip, peer = "a", "a:1"


def test_no_line_about_a_peer_keeps_out_one_about_a_bug_of_ours(logged: list[Line]) -> None:
    lines = ConnectionLines(LogLimiter())
    peer: Any = Peer()
    for _ in range(LINES_OF_ADDRESS + 5):
        lines.failed(peer, ProtocolError("torn"))
    lines.failed(peer, ZeroDivisionError())
    assert len(logged) == LINES_OF_ADDRESS + 1
    assert isinstance(logged[-1].fields["exc_info"], ZeroDivisionError)
    lines.begin_interval()
    assert logged[-1].fields == {"count": 5, "most_of": "a", "of_it": 5}


def test_a_connection_that_an_error_of_the_system_ends_has_a_line(logged: list[Line]) -> None:
    lines = ConnectionLines(LogLimiter())
    peer: Any = Peer()
    lines.lost(peer, OSError(22, "Invalid argument"))
    assert [line.fields for line in logged] == [{"peer": "a:1", "reason": "OSError(22, 'Invalid argument')"}]


@pytest.mark.parametrize("error", [None, ConnectionResetError(), BrokenPipeError(), TimeoutError()])
def test_a_connection_that_its_peer_ends_has_none(logged: list[Line], error: Exception | None) -> None:
    peer: Any = Peer()
    ConnectionLines(LogLimiter()).lost(peer, error)
    assert logged == []
