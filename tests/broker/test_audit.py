"""Tests the audit log: denials at info and permissions at debug, with limits on the lines of a request and of a
second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.logging import DEBUG, Logger, levels
from broker.request.audit import INTERVAL_MS, LINES_A_SECOND, LINES_OF_REQUEST, SUPPRESSED_KINDS, AuditLog
from broker.request.context import ClientConnection, Context, Principal
from protocol.acl import Operation, Resource
from protocol.api_key import ApiKey
from tests.clock import ManualClock

MANY = 10 * LINES_OF_REQUEST
REQUESTS = 2 * LINES_A_SECOND // LINES_OF_REQUEST

Lines = list[tuple[str, str, dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Returns level, event and fields of each line."""
    logged: Lines = []

    def at(level: str) -> Any:
        return lambda logger, event, **fields: logged.append((level, event, fields))

    monkeypatch.setattr(Logger, "info", at("info"))
    monkeypatch.setattr(Logger, "debug", at("debug"))
    return logged


@pytest.fixture
def debug() -> Iterator[None]:
    levels.set("audit", DEBUG)
    yield
    levels.unset("audit")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def audit(clock: ManualClock) -> AuditLog:
    return AuditLog(clock)


def request(user: str = "eve") -> Context:
    connection = ClientConnection("PLAINTEXT", lambda _, answer: answer)
    connection.principal, connection.ip = Principal("User", user), "10.0.0.1"
    return Context(connection, ApiKey.CREATE_TOPICS, 7, 1, "test", 100)


def decide(audit: AuditLog, context: Context, count: int, *, is_allowed: bool = False) -> None:
    for number in range(count):
        audit.decided(context, Operation.CREATE, Resource.TOPIC, f"topic-{number}", is_allowed=is_allowed)


def test_a_denial_is_logged_at_info(audit: AuditLog, lines: Lines) -> None:
    decide(audit, request(), 1)
    ((level, event, fields),) = lines
    assert (level, event) == ("info", "denied")
    assert fields == {
        "principal": "User:eve",
        "operation": "CREATE",
        "resource": "TOPIC",
        "name": "topic-0",
        "host": "10.0.0.1",
        "listener": "PLAINTEXT",
        "api": "CREATE_TOPICS",
        "client_id": "test",
    }


def test_a_permission_is_not_logged_at_the_level_info(audit: AuditLog, lines: Lines) -> None:
    decide(audit, request(), 1, is_allowed=True)
    assert lines == []


@pytest.mark.usefixtures("debug")
def test_a_permission_is_logged_at_debug(audit: AuditLog, lines: Lines) -> None:
    decide(audit, request(), 1, is_allowed=True)
    assert [line[:2] for line in lines] == [("debug", "allowed")]


def test_a_request_has_so_many_lines_and_one_with_the_count_of_the_others(
    audit: AuditLog, clock: ManualClock, lines: Lines
) -> None:
    decide(audit, request(), MANY)
    assert len(lines) == LINES_OF_REQUEST
    clock.advance(INTERVAL_MS)
    _, event, fields = lines.pop()
    assert (event, len(lines)) == ("decisions without a line each", LINES_OF_REQUEST)
    assert (fields["count"], fields["decision"], fields["principal"]) == (MANY - LINES_OF_REQUEST, "denied", "User:eve")


def test_a_second_has_so_many_lines_however_many_requests_it_has(
    audit: AuditLog, clock: ManualClock, lines: Lines
) -> None:
    for _ in range(REQUESTS):
        decide(audit, request(), LINES_OF_REQUEST)
    assert len(lines) == LINES_A_SECOND
    clock.advance(INTERVAL_MS)
    assert lines[-1][2]["count"] == REQUESTS * LINES_OF_REQUEST - LINES_A_SECOND
    lines.clear()
    decide(audit, request(), 1)
    assert [event for _, event, _ in lines] == ["denied"]


def test_only_so_many_kinds_are_counted_apart(audit: AuditLog, clock: ManualClock, lines: Lines) -> None:
    users = 2 * LINES_A_SECOND
    for number in range(users):
        decide(audit, request(f"user-{number}"), 1)
    lines.clear()
    clock.advance(INTERVAL_MS)
    assert len(lines) == SUPPRESSED_KINDS + 1
    assert sum(fields["count"] for _, _, fields in lines) == users - LINES_A_SECOND
    assert not clock.timers
