"""The broker's options for the share coordinator.

Each attribute is Kafka's option of that name, with dots, after share.coordinator; the defaults are Kafka's.
"""

from __future__ import annotations

from typing import NamedTuple


class ShareSettings(NamedTuple):
    """The options in force."""

    snapshot_update_records_per_snapshot: int = 500
    cold_partition_snapshot_interval_ms: int = 300_000
