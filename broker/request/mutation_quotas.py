"""The token buckets of clients with a quota of changes to the cluster, at every controller (KIP-599).

A client that exceeds its quota gets a throttle time, and its change is rejected if its bucket is empty;
`broker/request/client_quotas.py` also pauses the connection.

Source: Kafka's ControllerMutationQuotaManager.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from broker.clock import Clock
from broker.request.context import Context
from coordinator.cluster.image import Image
from coordinator.cluster.security.mutation_quota import MUTATIONS, MutationQuota, TokenBucket
from coordinator.cluster.security.quota_limits import Scope

MAX_BUCKETS: Final = 10_000
"""Maximum number of remembered buckets: a client may use another client id in each request."""


class MutationQuotas:
    """The quotas of changes to the cluster's metadata, with their buckets."""

    def __init__(self, image: Image, clock: Clock, burst_s: int) -> None:
        """`burst_s` is the number of seconds whose quota a bucket holds."""
        self._image = image
        self._clock = clock
        self._burst_s = burst_s
        self._buckets: OrderedDict[Scope, TokenBucket] = OrderedDict()
        """The buckets, the least recently used first."""

    def find(self, context: Context, *, is_strict: bool) -> MutationQuota | None:
        """Returns the quota to charge for a request; None if its client has no quota."""
        limit = self._image.quotas.limits(MUTATIONS).find(context.principal.name, context.client_id or "")
        if limit is None:
            return None
        bucket = self._buckets.get(limit.scope)
        if bucket is None:
            bucket = self._buckets[limit.scope] = TokenBucket(self._burst_s)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(limit.scope)
        now_ms = self._clock.monotonic_ms()
        bucket.fill(limit.value, now_ms)
        return MutationQuota(bucket, limit.value, now_ms, is_strict=is_strict)
