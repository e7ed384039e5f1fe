"""Options that exist only as dynamic configs: replication throttles (KIP-73, KIP-113)."""

from __future__ import annotations

from typing import ClassVar

from protocol.config import CLUSTER_WIDE, LONG, Config, option
from storage.config import MAX_LONG


class ThrottleOptions(Config):
    """Limits on the bytes per second of throttled replicas; no limit unless set."""

    KIND: ClassVar[str] = "broker"

    leader_replication_throttled_rate = option(
        LONG,
        MAX_LONG,
        "Bytes per second that throttled followers may fetch from this broker.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    follower_replication_throttled_rate = option(
        LONG,
        MAX_LONG,
        "Bytes per second that this broker may fetch for its throttled replicas.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second = option(
        LONG,
        MAX_LONG,
        "Bytes per second that moves of replicas between directories may take.",
        at_least=0,
        update=CLUSTER_WIDE,
    )
