"""Counts the answered requests of each API, and measures how long a sample of them took.

Counting a request is an addition. The sampling rate of a busy API is adjusted so that its newest SAMPLES requests cover
half a minute. Source: kafka.network.RequestChannel.Metrics, whose histograms are samples too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.clock import NS_PER_MS, Clock
from protocol.api_key import ApiKey

if TYPE_CHECKING:
    from broker.request.context import Context

FETCH_FOLLOWER: Final = max(ApiKey) + 1
"""Counts as the API key of a follower's Fetch: Kafka counts the two kinds of Fetch separately."""

SAMPLES: Final = 1024
"""Number of requests of an API whose times are remembered, as in Kafka's histograms."""

SOON_NS: Final = 16 * NS_PER_MS
LATE_NS: Final = 64 * NS_PER_MS
"""If samples are closer than SOON_NS, the sampling rate is halved; if they are further apart than LATE_NS, it is
doubled. So SAMPLES of them cover half a minute."""

OVERDUE_NS: Final = 250 * NS_PER_MS
"""After this time the next request is timed in any case, because a busy API may have become idle."""

MAX_STRIDE: Final = 4096


class TimePart:
    """One part of the time of an API's timed requests, in nanoseconds: a value for each sample."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[int] = []

    def put(self, position: int, value: int) -> None:
        if position == len(self.values):
            self.values.append(value)
        else:
            self.values[position] = value


class ApiTimes:
    """The timed requests of one API, the newest SAMPLES."""

    __slots__ = (
        "_countdown", "_due_ns", "_last_ns", "_position", "_stride", "local", "queue", "remote", "send", "total",
    )  # fmt: skip

    def __init__(self) -> None:
        self._stride = 1
        """The number of requests per timed request."""
        self._countdown = 1
        self._last_ns = 0
        self._due_ns = 0
        self._position = 0
        self.total = TimePart()
        """Time from the receipt of the request to its answer."""
        self.queue = TimePart()
        """Time spent waiting for earlier requests of the connection."""
        self.local = TimePart()
        """Time in the handler."""
        self.remote = TimePart()
        """Time waiting for other replicas, records, a coordinator's write or other members."""
        self.send = TimePart()
        """Time from the answer until the kernel has its last byte; 0 until that is known. Not part of `total`."""

    def is_due(self, started_ns: int) -> bool:
        """True if a request that started at `started_ns` should be timed."""
        self._countdown -= 1
        return self._countdown <= 0 or started_ns >= self._due_ns

    def add(self, context: Context, now_ns: int) -> int:
        """Remembers the times of a request that is answered now, and returns the position of its sample."""
        since_ns = now_ns - self._last_ns
        if since_ns < SOON_NS:
            self._stride = min(self._stride * 2, MAX_STRIDE)
        elif since_ns > LATE_NS:
            self._stride = max(self._stride // 2, 1)
        self._countdown = self._stride
        self._last_ns, self._due_ns = now_ns, now_ns + OVERDUE_NS
        queue_ns, local_ns, remote_ns = parts(context, now_ns)
        at = self._position
        self.queue.put(at, queue_ns)
        self.local.put(at, local_ns)
        self.remote.put(at, remote_ns)
        self.total.put(at, queue_ns + local_ns + remote_ns)
        self.send.put(at, 0)
        self._position = (at + 1) % SAMPLES
        return at


def parts(context: Context, now_ns: int) -> tuple[int, int, int]:
    """Returns, for a request that is answered now, the times that it waited behind others, was handled, and waited
    afterwards.
    """
    started_ns, parked_ns = context.started_ns, context.parked_ns
    begun_ns = max(context.connection.begun_ns, started_ns)
    worked_until_ns = parked_ns if parked_ns else now_ns
    return begun_ns - started_ns, max(worked_until_ns - begun_ns, 0), now_ns - worked_until_ns


def ignore_slow(context: Context, now_ns: int) -> None:
    """Ignores a slow request."""


def ignore_sample(context: Context, times: ApiTimes, place: int, now_ns: int) -> None:
    """Ignores a sample: its send time stays 0."""


class RequestTimes:
    """The requests of all APIs."""

    __slots__ = ("_apis", "_now_ns", "counts", "is_timed", "on_sample", "on_slow", "slow_ns")

    def __init__(self, clock: Clock) -> None:
        self._now_ns = clock.monotonic_ns
        self.counts: dict[int, int] = dict.fromkeys((*ApiKey, FETCH_FOLLOWER), 0)
        """Answered requests, by API key."""
        self.is_timed = False
        """True if requests are timed, because something reads the times."""
        self.slow_ns = 0
        """The age at which an answered request counts as slow; 0 if slow requests aren't reported."""
        self.on_slow: Callable[[Context, int], None] = ignore_slow
        """Called with a slow request, and the time of its answer."""
        self.on_sample: Callable[[Context, ApiTimes, int, int], None] = ignore_sample
        """Called with a timed request, the position of its sample, and the time of its answer, before the answer is
        sent.
        """
        self._apis: dict[int, ApiTimes] = {}

    def answered(self, context: Context) -> None:
        """Counts a request, and times it if it is due."""
        key = context.counted_as
        self.counts[key] += 1
        if self.is_timed:
            times = self._apis.get(key)
            if times is None:
                times = self._apis[key] = ApiTimes()
            if times.is_due(context.started_ns):
                answered_ns = self._now_ns()
                self.on_sample(context, times, times.add(context, answered_ns), answered_ns)
        if self.slow_ns:
            now_ns = self._now_ns()
            if now_ns - context.started_ns >= self.slow_ns:
                self.on_slow(context, now_ns)

    def times(self, key: int) -> ApiTimes | None:
        """Returns the times of an API; None if none of its requests was timed."""
        return self._apis.get(key)
