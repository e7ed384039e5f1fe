"""The quotas of clients: bytes produced and fetched, and the share of the broker's time (KIP-13, KIP-124, KIP-219). The
controller enforces the quotas of changes to the cluster (mutation_quotas.py), but a client that it throttles is
paused here.

A client beyond its quota is answered at once, with its throttle time, and its connection is neither read nor answered
for that time. A fetch beyond the quota is answered without records. While no quota is set, nothing here is called.

Source: Kafka's ClientQuotaManager and ClientRequestQuotaManager.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from broker.clock import Clock
from broker.request.context import AnswerBuffers, Context
from coordinator.cluster.changes import Delta, QuotaChanged
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.security.mutation_quota import MUTATIONS
from coordinator.cluster.security.quota_limits import QuotaLimits, Scope
from coordinator.rate import Rate
from protocol.api_key import ApiKey

PRODUCED, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
KINDS: Final = (PRODUCED, FETCHED, TIME)
CONNECTIONS: Final = "connection_creation_rate"

MAX_RATES: Final = 10_000
"""Maximum number of remembered rates of each kind: a client may use another client id in each request."""

PERCENT_PER_NS: Final = 100 / 1e9

EXEMPT: Final = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ENVELOPE,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""Requests without a quota: those that brokers send each other, and those that clients send before they are
authenticated.
"""


class RatesByScope:
    """The rates of clients with one kind of limit, the longest idle first."""

    def __init__(self, limits: QuotaLimits, samples: int, window_ms: int) -> None:
        self.limits = limits
        self._samples = samples
        self._window_ms = window_ms
        self._rates: OrderedDict[Scope, Rate] = OrderedDict()

    def record(self, context: Context, value: float, now_ms: int, *, is_kept_beyond: bool = True) -> int:
        """Records a client's use and returns its throttle time. Use beyond the limit is counted only if
        `is_kept_beyond`.
        """
        limit = self.limits.find(context.principal.name, context.client_id or "")
        if limit is None:
            return 0
        rate = self._rates.get(limit.scope)
        if rate is None:
            rate = self._rates[limit.scope] = Rate(self._samples, self._window_ms)
            if len(self._rates) > MAX_RATES:
                self._rates.popitem(last=False)
        else:
            self._rates.move_to_end(limit.scope)
        rate.record(value, now_ms)
        throttle_ms = rate.throttle_ms(limit.value, now_ms)
        if throttle_ms and not is_kept_beyond:
            rate.take_back(value)
        return throttle_ms

    def take_back(self, context: Context, value: float) -> None:
        """Removes the value that was recorded last."""
        limit = self.limits.find(context.principal.name, context.client_id or "")
        if limit is not None:
            self._rates[limit.scope].take_back(value)

    def largest(self, context: Context) -> float | None:
        """Returns the maximum that a client may use in one request: the limit over all windows but one."""
        limit = self.limits.find(context.principal.name, context.client_id or "")
        return None if limit is None else limit.value * (self._samples - 1) * self._window_ms / 1000

    def keep_rates(self, older: RatesByScope) -> None:
        """Keeps the rates that were measured under the previous limits."""
        self._rates = older._rates


class ClientQuotas:
    """The quotas in the cluster's metadata, enforced on the requests of a broker."""

    def __init__(
        self,
        loader: MetadataLoader,
        clock: Clock,
        samples: int,
        window_ms: int,
        on_change: Callable[[ClientQuotas], None],
    ) -> None:
        """`on_change` is called when quotas are set or removed."""
        self._image = loader.image
        self._clock = clock
        self._samples = samples
        self._window_ms = window_ms
        self._on_change = on_change
        self._rates: dict[str, RatesByScope] = {}
        self._addresses: Mapping[str | None, float] = {}
        self.is_on = False
        """True if the requests of any client are limited."""
        loader.subscribe(self._changed)
        self._set()

    def _changed(self, delta: Delta) -> None:
        if delta.has(QuotaChanged):
            self._set()

    def _set(self) -> None:
        quotas = self._image.quotas
        for kind in KINDS:
            rates = RatesByScope(quotas.limits(kind), self._samples, self._window_ms)
            if kind in self._rates:
                rates.keep_rates(self._rates[kind])
            self._rates[kind] = rates
        self._addresses = quotas.address_limits(CONNECTIONS)
        self.is_on = any(self._has(kind) for kind in KINDS) or bool(quotas.limits(MUTATIONS))
        self._on_change(self)

    def _has(self, kind: str) -> bool:
        return len(self._rates[kind].limits) > 0

    @property
    def limits_fetches(self) -> bool:
        """True if any client's fetches are limited, by bytes or by time."""
        return self._has(FETCHED) or self._has(TIME)

    @property
    def limits_addresses(self) -> bool:
        """True if the connections of any address are limited."""
        return bool(self._addresses)

    def connections_per_second(self, ip: str) -> float | None:
        """Returns the connections that an address may open per second; None if it has no limit."""
        limit = self._addresses.get(ip)
        return self._addresses.get(None) if limit is None else limit

    def largest_fetch(self, context: Context) -> float | None:
        """Returns the bytes that a fetch may return; None if there is no limit."""
        return self._rates[FETCHED].largest(context)

    def fetched(self, context: Context, size_bytes: int) -> bool:
        """Records a fetch whose answer has `size_bytes`. Returns True if the client is throttled: then the fetch is
        answered without records, and the bytes don't count.
        """
        now_ms = self._clock.monotonic_ms()
        by_bytes = self._rates[FETCHED].record(context, size_bytes, now_ms, is_kept_beyond=False)
        by_time = self._time_throttle_ms(context, now_ms)
        if by_time and not by_bytes:
            self._rates[FETCHED].take_back(context, size_bytes)
        context.throttle_ms = max(by_bytes, by_time)
        return context.throttle_ms > 0

    def _time_throttle_ms(self, context: Context, now_ms: int) -> int:
        worked_until_ns = context.parked_ns or self._clock.monotonic_ns()
        worked_ns = worked_until_ns - max(context.connection.begun_ns, context.started_ns)
        throttle_ms = self._rates[TIME].record(context, max(worked_ns, 0) * PERCENT_PER_NS, now_ms)
        return min(throttle_ms, self._window_ms)

    def record(self, context: Context, *, is_answered: bool = True) -> int:
        """Records a request before its answer is encoded, and returns the throttle time of its client. A consumer's
        Fetch is recorded by `fetched`."""
        key = context.key
        if key == ApiKey.FETCH or key in EXEMPT:
            return context.throttle_ms
        now_ms = self._clock.monotonic_ms()
        by_bytes = self._rates[PRODUCED].record(context, context.size_bytes, now_ms) if key == ApiKey.PRODUCE else 0
        by_time = self._time_throttle_ms(context, now_ms) if is_answered else 0
        context.throttle_ms = max(context.throttle_ms, by_bytes, by_time)
        return context.throttle_ms


def pause_throttled(context: Context, _: AnswerBuffers) -> None:
    """Pauses the connection of a client that is beyond a quota. Its answer, which has the throttle time, is sent."""
    if context.throttle_ms:
        context.connection.throttle(context.throttle_ms)
