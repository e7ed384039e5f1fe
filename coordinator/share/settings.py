"""The broker's options for the share coordinator.

Each attribute is the option of Kafka's that has its name, with dots, behind share.coordinator; so are the defaults.
"""

from __future__ import annotations

from typing import NamedTuple


class ShareSettings(NamedTuple):
    """The options in force."""

    snapshot_update_records_per_snapshot: int = 500
    cold_partition_snapshot_interval_ms: int = 300_000
