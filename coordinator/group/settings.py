"""The broker's options for the group coordinator, set by the broker, by name, whenever they change.

Each attribute is Kafka's option of that name, with dots; the defaults are Kafka's.
"""

from __future__ import annotations

from typing import NamedTuple


class GroupSettings(NamedTuple):
    """The options in force."""

    group_initial_rebalance_delay_ms: int = 3_000
    group_max_session_timeout_ms: int = 1_800_000
    group_min_session_timeout_ms: int = 6_000
    group_max_size: int = 0x7FFFFFFF
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    max_record_bytes: int = 1_048_588
    """max.message.bytes of `__consumer_offsets`: a record that doesn't fit in a batch can't be written."""
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_max_size: int = 0x7FFFFFFF
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_initialize_retry_interval_ms: int = 30_000
    group_share_max_size: int = 200
    group_streams_max_size: int = 0x7FFFFFFF

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000
