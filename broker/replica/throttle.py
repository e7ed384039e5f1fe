"""Replication throttles: limit the rate of copying the replicas that an operator has named (KIP-73, KIP-113).

A throttle never delays an in-sync replica. Source: ReplicationQuotaManager, ReplicaManager.shouldLeaderThrottle,
RemoteLeaderEndPoint.shouldFollowerThrottle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.config.live import LiveConfig
from broker.config.throttles import ThrottleOptions
from coordinator.rate import Rate
from storage.config import MAX_LONG

ALL_REPLICAS: Final = ("*",)
MS_PER_S: Final = 1000


class ReplicationThrottle:
    """The bytes per second of throttled replicas on one side, compared with the limit."""

    def __init__(self, clock: Clock, limit: Callable[[], int], samples: int, window_s: int) -> None:
        self._clock = clock
        self._limit = limit
        self._rate = Rate(samples, window_s * MS_PER_S, least_windows=1)

    @property
    def is_on(self) -> bool:
        """True if there is a limit."""
        return self._limit() != MAX_LONG

    @property
    def is_exceeded(self) -> bool:
        """True if the rate is above the limit."""
        return self.is_on and self._rate.per_second(self._clock.monotonic_ms()) > self._limit()

    def record(self, size_bytes: int) -> None:
        """Counts bytes of throttled replicas, even if there is no limit."""
        self._rate.record(size_bytes, self._clock.monotonic_ms())


def leader_throttle(clock: Clock, config: LiveConfig) -> ReplicationThrottle:
    """Returns the throttle of followers' reads from this broker."""
    return _throttle(clock, config, lambda: throttles(config).leader_replication_throttled_rate)


def follower_throttle(clock: Clock, config: LiveConfig) -> ReplicationThrottle:
    """Returns the throttle of this broker's reads from leaders."""
    return _throttle(clock, config, lambda: throttles(config).follower_replication_throttled_rate)


def moves_throttle(clock: Clock, config: LiveConfig) -> ReplicationThrottle:
    """Returns the throttle of copies between log directories."""
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
    """Returns the current limits."""
    return config.layers.throttles


def names(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """True if a topic's list of throttled replicas contains this partition's replica on that broker."""
    return tuple(replicas) == ALL_REPLICAS or f"{partition}:{broker_id}" in replicas
