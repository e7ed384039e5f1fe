"""Tests which replicas are throttled, and their limit."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.layers import Layers
from broker.config.live import LiveConfig
from broker.replica.throttle import follower_throttle, leader_throttle, moves_throttle, names
from storage.config import MAX_LONG
from tests.clock import ManualClock

FOLLOWER_RATE = "follower.replication.throttled.rate"


@pytest.mark.parametrize(
    ("replicas", "is_named"),
    [((), False), (("*",), True), (("0:1", "1:2"), True), (("1:1",), False), (("0:2",), False)],
)
def test_a_list_names_replicas_by_partition_and_broker(replicas: tuple[str, ...], is_named: bool) -> None:
    assert names(replicas, 1, 2) == is_named


def test_a_throttle_is_exceeded_while_the_rate_is_above_the_limit() -> None:
    clock, config = ManualClock(ahead_ms=5_000_000), live({FOLLOWER_RATE: "100"})
    throttle = follower_throttle(clock, config)
    throttle.record(150)
    assert throttle.is_exceeded
    clock.advance(1_500)
    assert not throttle.is_exceeded


def test_without_a_limit_nothing_is_exceeded_and_all_is_measured() -> None:
    clock, config = ManualClock(ahead_ms=5_000_000), live({})
    throttle = follower_throttle(clock, config)
    throttle.record(1 << 40)
    assert not throttle.is_exceeded
    config.layers = config.layers.changed(cluster={FOLLOWER_RATE: "100"})
    assert throttle.is_exceeded


def test_each_side_has_its_limit_and_a_broker_s_is_the_stronger() -> None:
    clock = ManualClock(ahead_ms=5_000_000)
    config = live({"leader.replication.throttled.rate": "5", "replica.alter.log.dirs.io.max.bytes.per.second": "7"})
    config.layers = config.layers.changed(cluster={FOLLOWER_RATE: "1", "leader.replication.throttled.rate": "1"})
    for throttle, size_bytes, is_exceeded in (
        (leader_throttle(clock, config), 5, False),
        (follower_throttle(clock, config), 2, True),
        (moves_throttle(clock, config), 8, True),
    ):
        throttle.record(size_bytes)
        assert throttle.is_exceeded == is_exceeded


def test_a_limit_that_cannot_be_read_is_told_and_is_none() -> None:
    layers = live({FOLLOWER_RATE: "fast"}).layers
    assert FOLLOWER_RATE in layers.problems[0]
    assert layers.throttles.follower_replication_throttled_rate == MAX_LONG


def live(dynamic: dict[str, str]) -> LiveConfig:
    return LiveConfig(Layers(BrokerConfig(), broker=dynamic))
