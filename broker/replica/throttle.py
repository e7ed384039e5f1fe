"""Replication throttles: how fast replicas that an operator has named are copied (KIP-73, KIP-113).

A throttle never stands in the way of a replica that is in sync. Source: ReplicationQuotaManager,
ReplicaManager.shouldLeaderThrottle, RemoteLeaderEndPoint.shouldFollowerThrottle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.config.live import LiveConfig
from broker.config.throttles import ThrottleOptions
from coordinator.replication.rate import SampledRate
from storage.config import MAX_LONG

ALL_REPLICAS: Final = ("*",)
MS_PER_S: Final = 1000


class ReplicationThrottle:
    """The bytes of throttled replicas on one side, and whether they come faster than they may."""

    def __init__(self, clock: Clock, limit: Callable[[], int], samples: int, window_s: int) -> None:
        self._clock = clock
        self._limit = limit
        self._rate = SampledRate(samples, window_s * MS_PER_S)

    @property
    def is_on(self) -> bool:
        """True while there is a limit."""
        return self._limit() != MAX_LONG

    @property
    def is_exceeded(self) -> bool:
        """True while the rate is above the limit."""
        return self.is_on and self._rate.per_second(self._clock.monotonic_ms()) > self._limit()

    def record(self, size_bytes: int) -> None:
        """Counts bytes of throttled replicas, which are measured before there is a limit as well."""
        self._rate.record(size_bytes, self._clock.monotonic_ms())


def leader_throttle(clock: Clock, config: LiveConfig) -> ReplicationThrottle:
    """Returns the throttle of what followers read here."""
    return _throttle(clock, config, lambda: throttles(config).leader_replication_throttled_rate)


def follower_throttle(clock: Clock, config: LiveConfig) -> ReplicationThrottle:
    """Returns the throttle of what is read for the replicas here."""
    return _throttle(clock, config, lambda: throttles(config).follower_replication_throttled_rate)


def moves_throttle(clock: Clock, config: LiveConfig) -> ReplicationThrottle:
    """Returns the throttle of what is copied between log directories."""
    static: BrokerConfig = config.layers.static
    return ReplicationThrottle(
        clock,
        lambda: throttles(config).replica_alter_log_dirs_io_max_bytes_per_second,
        static.alter_log_dirs_replication_quota_window_num,
        static.alter_log_dirs_replication_quota_window_size_seconds,
    )


def _throttle(clock: Clock, config: LiveConfig, limit: Callable[[], int]) -> ReplicationThrottle:
    static: BrokerConfig = config.layers.static
    windows = static.replication_quota_window_num, static.replication_quota_window_size_seconds
    return ReplicationThrottle(clock, limit, *windows)


def throttles(config: LiveConfig) -> ThrottleOptions:
    """Returns the limits as they are now."""
    return config.layers.throttles


def names(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """True where a topic's list of throttled replicas has the replica of this partition on that broker."""
    return tuple(replicas) == ALL_REPLICAS or f"{partition}:{broker_id}" in replicas
