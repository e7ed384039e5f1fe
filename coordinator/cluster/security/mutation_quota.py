"""The quota of changes to the cluster: created and deleted partitions take tokens from a bucket (KIP-599).

A bucket fills at the quota's rate, up to a burst of some seconds. It can be overdrawn once; then the client must wait
until it is no longer overdrawn.

Source: Kafka's TokenBucket, Sensor.checkQuotas and ControllerMutationQuotaManager.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from coordinator.rate import MAX_WAIT_MS
from protocol.errors import ErrorCode, KafkaError

MUTATIONS: Final = "controller_mutation_rate"

Charge: TypeAlias = Callable[[int], None]
"""Charges a number of partitions of one topic to the client. Raises KafkaError(THROTTLING_QUOTA_EXCEEDED) if they must
not be changed.
"""


def unlimited(_partitions: int) -> None:
    """Charges nothing."""


class TokenBucket:
    """The tokens of the clients that share a quota. A new bucket is full."""

    __slots__ = ("_burst_s", "_tokens", "_updated_ms")

    def __init__(self, burst_s: float) -> None:
        """`burst_s` is the number of seconds whose tokens it can hold."""
        self._burst_s = burst_s
        self._tokens = math.inf
        self._updated_ms = 0

    def tokens(self, rate: float, now_ms: int) -> float:
        """Returns the number of tokens, at a rate of tokens per second; negative if the bucket is overdrawn."""
        return min(rate * self._burst_s, self._tokens + rate * (now_ms - self._updated_ms) / 1000)

    def fill(self, rate: float, now_ms: int) -> None:
        """Adds the tokens since the last call. Called for each request, because the rate may differ at the next
        request."""
        self.take(0, rate, now_ms)

    def take(self, tokens: float, rate: float, now_ms: int) -> None:
        """Takes tokens, even if the bucket has fewer."""
        self._tokens = self.tokens(rate, now_ms) - tokens
        self._updated_ms = now_ms


class MutationQuota:
    """The quota of one request. A decision on the request makes charges, which take tokens from the bucket once the
    decision is carried out."""

    __slots__ = ("_bucket", "_now_ms", "_rate", "_wait_ms", "is_strict")

    def __init__(self, bucket: TokenBucket, rate: float, now_ms: int, *, is_strict: bool) -> None:
        """A strict quota rejects changes while the bucket is overdrawn. A permissive quota only makes the client wait,
        for clients that don't know the error.
        """
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self.is_strict = is_strict
        self._wait_ms = 0

    @property
    def tokens(self) -> float:
        """The number of tokens in the bucket."""
        return self._bucket.tokens(self._rate, self._now_ms)

    def take(self, tokens: int, *, waits: bool) -> None:
        """Takes tokens from the bucket. If the client `waits`, it is throttled until the bucket is not overdrawn."""
        self._bucket.take(tokens, self._rate, self._now_ms)
        left = self.tokens
        if waits and left < 0:
            self._wait_ms = round(min(-left / self._rate * 1000, MAX_WAIT_MS))

    def throttle_ms(self, now_ms: int) -> int:
        """Returns the client's throttle time from now on, after its request is complete."""
        return max(0, self._wait_ms - (now_ms - self._now_ms))


class Charges:
    """The charges of one decision, which are an effect of it: deciding again has the same result."""

    __slots__ = ("_partitions", "_quota", "_tokens", "_waits")

    def __init__(self, quota: MutationQuota) -> None:
        self._quota = quota
        self._tokens = quota.tokens
        self._partitions = 0
        self._waits = False
        """True if the client is throttled while the bucket is overdrawn."""

    def charge(self, partitions: int) -> None:
        """Charges a token for each partition of a topic. Raises KafkaError(THROTTLING_QUOTA_EXCEEDED), and charges
        none, if the quota is strict and its bucket is overdrawn.
        """
        is_strict = self._quota.is_strict
        if is_strict and self._tokens < 0:
            self._waits = True
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._tokens -= partitions
        self._partitions += partitions
        self._waits = self._waits or not is_strict

    def take(self) -> None:
        """Takes the tokens from the bucket."""
        self._quota.take(self._partitions, waits=self._waits)
