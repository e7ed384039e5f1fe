"""Tests LogConfig: the options that topics may have. The tests of the broker's options check that each option is
Kafka's own."""

from __future__ import annotations

import pytest

from protocol.config import ConfigError
from storage.config import LogConfig


def error(**texts: str) -> str:
    with pytest.raises(ConfigError) as raised:
        LogConfig.parse({name.replace("_", "."): text for name, text in texts.items()})
    return raised.value.message


def test_the_cleanup_policy_tells_what_to_do() -> None:
    both = LogConfig.parse({"cleanup.policy": "compact,delete"})
    none = LogConfig.parse({"cleanup.policy": ""})
    assert [(config.compact, config.delete) for config in (LogConfig(), both, none)] == [
        (False, True),
        (True, True),
        (False, False),
    ]


def test_a_compacted_log_rolls_within_its_compaction_lag() -> None:
    lag = {"max.compaction.lag.ms": "1000"}
    assert LogConfig.parse({**lag, "cleanup.policy": "compact"}).max_segment_ms == 1000
    assert LogConfig.parse(lag).max_segment_ms == LogConfig().segment_ms


def test_the_internal_segment_size_replaces_the_other_without_a_bound() -> None:
    assert LogConfig.parse({"internal.segment.bytes": "100"}).segment_bytes == 100


def test_a_gzip_level_is_one_to_nine_or_the_default() -> None:
    assert LogConfig.parse({"compression.gzip.level": "-1"}).compression_gzip_level == -1
    message = "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"
    assert error(compression_gzip_level="0") == message


@pytest.mark.parametrize("text", ["*", "", "0:1", "0:1,2:3", "0:1,0:1"])
def test_throttled_replicas_are_pairs_or_a_star(text: str) -> None:
    name = "leader.replication.throttled.replicas"
    assert LogConfig.parse({name: text}).leader_replication_throttled_replicas == tuple(filter(None, text.split(",")))


def test_other_throttled_replicas_are_refused() -> None:
    assert error(leader_replication_throttled_replicas="0:1,*") == (
        "Invalid value [0:1, *] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def test_the_compaction_lags_are_in_order() -> None:
    assert error(min_compaction_lag_ms="5", max_compaction_lag_ms="3") == (
        "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (3)"
    )


def test_tiered_storage_is_refused() -> None:
    assert error(remote_storage_enable="true") == (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )


def test_an_unknown_option_is_named() -> None:
    assert error(foo="x") == "Unknown topic config name: foo"
