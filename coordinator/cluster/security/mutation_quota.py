"""The quota of changes of the cluster: partitions that are created and deleted, from a bucket of tokens (KIP-599).

A bucket fills at its rate, up to what comes in some seconds. It may be overdrawn once; who finds it so waits until it
is not any more. Source: Kafka's TokenBucket, Sensor.checkQuotas and ControllerMutationQuotaManager.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from coordinator.cluster.security.quota_rate import MAX_WAIT_MS
from protocol.errors import ErrorCode, KafkaError

MUTATIONS: Final = "controller_mutation_rate"

Charge: TypeAlias = Callable[[int], None]
"""Charges so many partitions of one topic to whoever asks. Raises KafkaError(THROTTLING_QUOTA_EXCEEDED) where they are
not to be changed."""


def unlimited(_partitions: int) -> None:
    """Charges nobody."""


class TokenBucket:
    """The tokens of those who share a quota. A new one is full."""

    __slots__ = ("_burst_s", "_tokens", "_updated_ms")

    def __init__(self, burst_s: float) -> None:
        """`burst_s`: it has room for what comes in so many seconds."""
        self._burst_s = burst_s
        self._tokens = math.inf
        self._updated_ms = 0

    def tokens(self, rate: float, now_ms: int) -> float:
        """Returns what is in it, at so many tokens a second; less than nothing where it is overdrawn."""
        self._tokens = min(rate * self._burst_s, self._tokens + rate * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, tokens: float, rate: float, now_ms: int) -> None:
        """Takes tokens out, more than there are if need be."""
        self._tokens = self.tokens(rate, now_ms) - tokens


class MutationQuota:
    """The part of one request: it takes tokens out of a bucket."""

    __slots__ = ("_bucket", "_is_strict", "_now_ms", "_rate", "_wait_ms")

    def __init__(self, bucket: TokenBucket, rate: float, now_ms: int, *, is_strict: bool) -> None:
        """A strict one refuses what comes when the bucket is overdrawn; the other takes all the same, for clients that
        do not know the error, and has them wait."""
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._wait_ms = 0

    def charge(self, partitions: int) -> None:
        """Takes a token for each partition of a topic. Raises KafkaError(THROTTLING_QUOTA_EXCEEDED), and takes none,
        where the quota is strict and its bucket overdrawn."""
        if self._is_strict and self._note_wait():
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._bucket.take(partitions, self._rate, self._now_ms)
        if not self._is_strict:
            self._note_wait()

    def _note_wait(self) -> bool:
        """Notes for how long the client waits where the bucket is overdrawn, and returns whether it is."""
        tokens = self._bucket.tokens(self._rate, self._now_ms)
        if tokens < 0:
            self._wait_ms = round(min(-tokens / self._rate * 1000, MAX_WAIT_MS))
        return tokens < 0

    def throttle_ms(self, now_ms: int) -> int:
        """Returns for how long the client is throttled from now on, once its request is done."""
        return max(0, self._wait_ms - (now_ms - self._now_ms))
