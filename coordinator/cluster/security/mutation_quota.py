"""The quota of changes to the cluster: created and deleted partitions take tokens from a bucket (KIP-599).

A bucket fills at the quota's rate, up to a burst of some seconds. It can be overdrawn once; then the client must wait
until it is no longer overdrawn.

Source: Kafka's TokenBucket, Sensor.checkQuotas and ControllerMutationQuotaManager.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

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

    def take(self, tokens: float, rate: float, now_ms: int) -> None:
        """Takes tokens, even if the bucket has fewer."""
        self._tokens = self.tokens(rate, now_ms) - tokens
        self._updated_ms = now_ms


class MutationQuota:
    """The quota of one request, which takes tokens from a bucket once the request is decided."""

    __slots__ = ("_bucket", "_is_strict", "_now_ms", "_rate", "_wait_ms")

    def __init__(self, bucket: TokenBucket, rate: float, now_ms: int, *, is_strict: bool) -> None:
        """A strict quota rejects changes while the bucket is overdrawn. A permissive quota only makes the client wait,
        for clients that don't know the error.
        """
        self._bucket = bucket
        self._rate = rate
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._wait_ms = 0

    def begin(self) -> Charges:
        """Returns the charges of a decision on the request."""
        return Charges(self._bucket.tokens(self._rate, self._now_ms), is_strict=self._is_strict)

    def take(self, partitions: int, overdrawn: float) -> None:
        """Takes the tokens of a decision that was made; an effect. The client must wait if the decision has seen the
        bucket overdrawn."""
        self._bucket.take(partitions, self._rate, self._now_ms)
        if overdrawn:
            self._wait_ms = round(min(overdrawn / self._rate * 1000, MAX_WAIT_MS))

    def throttle_ms(self, now_ms: int) -> int:
        """Returns the client's throttle time from now on, after its request is complete."""
        return max(0, self._wait_ms - (now_ms - self._now_ms))


class Charges:
    """The charges of one decision. The bucket has not changed yet, so that the decision can be made again."""

    __slots__ = ("_is_strict", "_tokens", "overdrawn", "partitions")

    def __init__(self, tokens: float, *, is_strict: bool) -> None:
        self._tokens = tokens
        self._is_strict = is_strict
        self.partitions = 0
        self.overdrawn = 0.0
        """The number of tokens that were missing at the last check."""

    def charge(self, partitions: int) -> None:
        """Takes a token for each partition of a topic. Raises KafkaError(THROTTLING_QUOTA_EXCEEDED), and takes none, if
        the quota is strict and its bucket is overdrawn.
        """
        if self._is_strict and self._is_overdrawn():
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._tokens -= partitions
        self.partitions += partitions
        if not self._is_strict:
            self._is_overdrawn()

    def _is_overdrawn(self) -> bool:
        self.overdrawn = max(-self._tokens, 0.0)
        return self._tokens < 0


class QuotaCharged(NamedTuple):
    """A decision has charged its client's quota."""

    quota: MutationQuota
    partitions: int
    overdrawn: float

    def carry_out(self, sessions: object, offset: int) -> None:
        self.quota.take(self.partitions, self.overdrawn)
