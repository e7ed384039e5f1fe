"""Tests when a client may request its subscription, and push: Apache Kafka's errors, in its order."""

from __future__ import annotations

import pytest

from coordinator.telemetry.instances import ClientInstance, ClientInstances
from coordinator.telemetry.subscriptions import ClientAttributes, RequestedMetrics
from protocol.errors import ErrorCode, KafkaError

INTERVAL_MS = 1000
MAX_BYTES = 100
ATTRIBUTES = ClientAttributes("x", None, "unknown", "unknown", "127.0.0.1", "1")


def instance(number: int = 2, version: int = 1, interval_ms: int = INTERVAL_MS) -> ClientInstance:
    return ClientInstance(number.to_bytes(16), ATTRIBUTES, RequestedMetrics(("*",), interval_ms), version)


def push(
    one: ClientInstance, now_ms: int, codec: int = 0, size: int = 10, *, wrong: int = 0, last: bool = False
) -> ErrorCode:
    """Returns the error of a push."""
    try:
        one.push(one.subscription_id + wrong, codec, size, MAX_BYTES, now_ms, is_last=last)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def ask(one: ClientInstance, now_ms: int) -> ErrorCode:
    """Returns the error of a request for the subscription."""
    try:
        one.ask(now_ms)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_client_asks_and_pushes_once_an_interval() -> None:
    one = instance()
    assert ask(one, 5) == ErrorCode.NONE
    assert ask(one, 1004) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(one, 20) == ErrorCode.NONE  # the first after a question comes when it likes
    assert push(one, 1019) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(one, 1020) == ErrorCode.NONE
    assert ask(one, 2019) == ErrorCode.THROTTLING_QUOTA_EXCEEDED  # a push counts as well
    assert ask(one, 2020) == ErrorCode.NONE


def test_the_last_push_comes_at_any_time_and_nothing_after_it() -> None:
    one = instance()
    assert ask(one, 0) == ErrorCode.NONE
    assert push(one, 1) == ErrorCode.NONE
    assert push(one, 2, last=True) == ErrorCode.NONE
    assert push(one, 5000) == ErrorCode.INVALID_REQUEST
    assert push(one, 9000) == ErrorCode.NONE  # the refused one did not say that it ends: so has Apache Kafka it


@pytest.mark.parametrize(("wrong", "codec", "size", "error"), [
    (1, 9, 101, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
    (0, 9, 101, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    (0, -1, 101, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    (0, 4, 101, ErrorCode.TELEMETRY_TOO_LARGE),
    (0, 4, 100, ErrorCode.NONE),
])  # fmt: skip
def test_errors_come_in_their_order(wrong: int, codec: int, size: int, error: ErrorCode) -> None:
    one = instance()
    ask(one, 0)
    assert push(one, 0, codec, size, wrong=wrong) == error


@pytest.mark.parametrize(("codec", "wrong"), [(0, 1), (7, 0)])
def test_one_that_has_to_ask_anew_may_ask_at_once(codec: int, wrong: int) -> None:
    one = instance()
    ask(one, 0)
    assert push(one, 1, codec, wrong=wrong) != ErrorCode.NONE
    assert ask(one, 2) == ErrorCode.NONE
    assert ask(one, 3) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_one_of_older_subscriptions_is_not_found() -> None:
    instances = ClientInstances()
    one = instance(version=1)
    instances.add(one, 0)
    assert instances.find(one.instance_id, 1, 5) is one
    assert instances.find(one.instance_id, 2, 5) is None
    assert instances.find(bytes(16), 1, 5) is None


def test_the_least_recent_goes_for_another() -> None:
    instances = ClientInstances(capacity=2)
    first, second, third = (instance(number) for number in (2, 3, 4))
    instances.add(first, 0)
    instances.add(second, 0)
    instances.find(first.instance_id, 1, 1)
    instances.add(third, 2)
    assert first.instance_id in instances
    assert second.instance_id not in instances
    assert len(instances) == 2


def test_one_that_stays_away_for_three_intervals_and_a_minute_goes() -> None:
    instances = ClientInstances()
    often, seldom = instance(2), instance(3, interval_ms=100_000)
    instances.add(often, 0)
    instances.add(seldom, 0)
    assert instances.expire(60_000) == []
    assert instances.expire(60_001) == [often.instance_id]
    assert instances.expire(300_000) == []
    assert instances.expire(300_001) == [seldom.instance_id]
    instances.remove(seldom.instance_id)  # it may be gone
