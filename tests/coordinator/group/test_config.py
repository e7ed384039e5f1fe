"""Tests group options: durations, and the errors about limits. The tests of the broker's options check the limits
themselves."""

from __future__ import annotations

import pytest

from coordinator.group.config import GroupConfig, clamped, duration_ms, limit_names
from protocol.config import ConfigError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H30M", 5_400_000),
        ("P1DT0.5S", 86_400_500),
        ("pt0s", 0),
        ("PT2,25S", 2250),
        ("P2D", 172_800_000),
        ("-PT1H", None),
        ("PT-1H", None),
        ("P", None),
        ("PT", None),
        ("1h", None),
        ("P1M", None),
    ],
)
def test_a_duration_is_of_days_to_seconds(text: str, milliseconds: int | None) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["earliest", "latest", "by_duration:PT1H"])
def test_a_share_group_starts_early_late_or_some_time_ago(text: str) -> None:
    assert GroupConfig.parse({"share.auto.offset.reset": text}).share_auto_offset_reset == text


@pytest.mark.parametrize("text", ["Earliest", "by_duration:", "by_duration:x", "by_duration:-PT1H"])
def test_no_other_start_is_known(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        GroupConfig.parse({"share.auto.offset.reset": text})
    assert raised.value.message == (
        f"Invalid value {text} for configuration share.auto.offset.reset: "
        f"Invalid value `{text}` for configuration share.auto.offset.reset. "
        "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


def test_the_brokers_limits_are_named_after_the_groups_option() -> None:
    assert limit_names("share.session.timeout.ms") == (
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    )
    assert limit_names("streams.num.standby.replicas")[1] == "group.streams.max.standby.replicas"


def test_a_value_is_brought_within_limits_that_have_narrowed() -> None:
    limits = {"group.share.min.session.timeout.ms": 10, "group.share.max.session.timeout.ms": 20}
    assert [clamped(value, "share.session.timeout.ms", limits) for value in (5, 15, 25)] == [10, 15, 20]


def test_a_session_is_longer_than_a_heartbeat() -> None:
    config = GroupConfig(consumer_session_timeout_ms=5, consumer_heartbeat_interval_ms=5)
    assert [error.message for error in config.outside({})] == [
        "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    ]
