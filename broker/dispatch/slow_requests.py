"""Logs requests that took longer than odradek.slow.request.ms, with the parts of their time. A wait that the client has
requested, for records or for other members, does not make a request slow.
"""

from __future__ import annotations

from typing import Final

from broker.clock import NS_PER_MS
from broker.dispatch.host import Host
from broker.logging import get_logger
from broker.request.context import Context
from broker.request.log_limiter import LogLimiter
from broker.request.request_times import FETCH_FOLLOWER, RequestTimes, parts
from protocol.api_key import ApiKey

WAITS_AS_IT_WAS_ASKED_TO: Final = frozenset(
    {ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, FETCH_FOLLOWER}
)

MAX_CLIENT_ID: Final = 200
"""Maximum characters of a client id in a line; a client may send thousands."""

logger = get_logger(__name__)


class SlowRequests:
    """Logs slow requests by the current option, from `follow` on."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._times: RequestTimes = host.interceptors.times
        self.lines = host.limited_lines["slow requests without a line"] = LogLimiter()

    def follow(self) -> None:
        """Applies the option, now and whenever it changes."""
        self._times.on_slow = self.note
        self._configure()
        self._host.loader.subscribe(lambda _: self._configure())

    def _configure(self) -> None:
        self._times.slow_ns = self._host.config.odradek_slow_request_ms * NS_PER_MS

    def note(self, context: Context, now_ns: int) -> None:
        """Logs an answered request that took longer than the limit, unless the client asked the broker to wait."""
        queue_ns, local_ns, remote_ns = parts(context, now_ns)
        at_work_ns = queue_ns + local_ns
        if context.counted_as in WAITS_AS_IT_WAS_ASKED_TO and at_work_ns < self._times.slow_ns:
            return
        if self.lines.allows(context.connection.ip):
            logger.warning(
                "slow request",
                api=ApiKey(context.key).name,
                version=context.version,
                client_id=None if context.client_id is None else context.client_id[:MAX_CLIENT_ID],
                peer=context.peer,
                listener=context.listener,
                size_bytes=context.size_bytes,
                total_ms=round((at_work_ns + remote_ns) / NS_PER_MS, 1),
                queue_ms=round(queue_ns / NS_PER_MS, 1),
                local_ms=round(local_ns / NS_PER_MS, 1),
                remote_ms=round(remote_ns / NS_PER_MS, 1),
            )
