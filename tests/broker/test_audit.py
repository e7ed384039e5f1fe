"""Tests the audit log: denials at info and permissions at debug, with limits on the lines of a request and of a
second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.logging import DEBUG, levels
from broker.request.audit import INTERVAL_MS, LINES_A_SECOND, LINES_OF_REQUEST, SUPPRESSED_KINDS, AuditLog
from broker.request.context import ClientConnection, Context, Principal
from protocol.acl import Operation, Resource
from protocol.api_key import ApiKey
from tests.clock import ManualClock
from tests.log_lines import Line

MANY = 10 * LINES_OF_REQUEST
REQUESTS = 2 * LINES_A_SECOND // LINES_OF_REQUEST


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


def test_a_denial_is_logged_at_info(audit: AuditLog, logged: list[Line]) -> None:
    decide(audit, request(), 1)
    ((level, event, fields, _),) = logged
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


def test_a_permission_is_not_logged_at_the_level_info(audit: AuditLog, logged: list[Line]) -> None:
    decide(audit, request(), 1, is_allowed=True)
    assert logged == []


@pytest.mark.usefixtures("debug")
def test_a_permission_is_logged_at_debug(audit: AuditLog, logged: list[Line]) -> None:
    decide(audit, request(), 1, is_allowed=True)
    assert [(line.level, line.event) for line in logged] == [("debug", "allowed")]


def test_a_request_has_so_many_lines_and_one_with_the_count_of_the_others(
    audit: AuditLog, clock: ManualClock, logged: list[Line]
) -> None:
    decide(audit, request(), MANY)
    assert len(logged) == LINES_OF_REQUEST
    clock.advance(INTERVAL_MS)
    _, event, fields, _ = logged.pop()
    assert (event, len(logged)) == ("decisions without a line each", LINES_OF_REQUEST)
    assert (fields["count"], fields["decision"], fields["principal"]) == (MANY - LINES_OF_REQUEST, "denied", "User:eve")


def test_a_second_has_so_many_lines_however_many_requests_it_has(
    audit: AuditLog, clock: ManualClock, logged: list[Line]
) -> None:
    for _ in range(REQUESTS):
        decide(audit, request(), LINES_OF_REQUEST)
    assert len(logged) == LINES_A_SECOND
    clock.advance(INTERVAL_MS)
    assert logged[-1].fields["count"] == REQUESTS * LINES_OF_REQUEST - LINES_A_SECOND
    logged.clear()
    decide(audit, request(), 1)
    assert [line.event for line in logged] == ["denied"]


def test_only_so_many_kinds_are_counted_apart(audit: AuditLog, clock: ManualClock, logged: list[Line]) -> None:
    users = 2 * LINES_A_SECOND
    for number in range(users):
        decide(audit, request(f"user-{number}"), 1)
    logged.clear()
    clock.advance(INTERVAL_MS)
    assert len(logged) == SUPPRESSED_KINDS + 1
    assert sum(line.fields["count"] for line in logged) == users - LINES_A_SECOND
    assert not clock.timers
