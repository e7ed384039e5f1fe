"""Options that exist only as dynamic configs: replication throttles (KIP-73, KIP-113)."""

from __future__ import annotations

from typing import ClassVar

from protocol.config import CLUSTER_WIDE, LONG, Config, option
from storage.config import MAX_LONG


class ThrottleOptions(Config):
    """Limits on the bytes per second of throttled replicas; no limit unless set."""

    KIND: ClassVar[str] = "broker"

    leader_replication_throttled_rate = option(
        "leader.replication.throttled.rate",
        LONG,
        MAX_LONG,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Bytes per second that throttled followers may fetch from this broker.",
    )
    follower_replication_throttled_rate = option(
        "follower.replication.throttled.rate",
        LONG,
        MAX_LONG,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Bytes per second that this broker may fetch for its throttled replicas.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second = option(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        MAX_LONG,
        at_least=0,
        update=CLUSTER_WIDE,
        doc="Bytes per second that moves of replicas between directories may take.",
    )
