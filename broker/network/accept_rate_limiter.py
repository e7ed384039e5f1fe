"""Limits the rate at which an address's connections are accepted.

Serving a connection takes the event loop a hundred microseconds, closing it on arrival half of that. An address that
connects ten thousand times a second without using the connections would take most of a core. So its requests to connect
are first blocked for a moment (`blocked_addresses.py`): they wait in its own kernel, which tries again a second later.
Some hundreds of clients that start together on one machine stay below the limit; some thousands are served within
seconds, and none is closed. If the kernel can't filter, the surplus is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from broker.clock import NS_PER_MS, NS_PER_S, Clock
from broker.config import BrokerConfig
from broker.network.connection_lines import ConnectionLines

BURST_SECONDS: Final = 4
"""An address without connections for this long may make this many seconds' worth at once."""

UNBLOCKED_SECONDS: Final = 1
"""Seconds' worth of connections that are accepted without a block. The rest come when the client's kernel tries
again."""

REMEMBERED: Final = 10_000
"""Number of remembered addresses above which the limiter searches for entries to remove."""
SEARCH_AGAIN_NS: Final = 100 * NS_PER_MS


NEVER_NS: Final = -(1 << 62)


class Burst(NamedTuple):
    """The connections that an address may make at once, as the time that they take at the allowed rate.

    An address that exceeds its burst has a smaller burst for a while: the connections that wait in its kernel come
    again together, and would exceed the usual burst again.
    """

    usual_ns: int
    reduced_ns: int
    reduced_for_ns: int

    def allows(self, owed_ns: int, since_exceeded_ns: int, rate: int) -> bool:
        """True if an address is within its burst, which is at least one connection."""
        burst_ns = self.reduced_ns if since_exceeded_ns < self.reduced_for_ns else self.usual_ns
        return owed_ns <= max(burst_ns, NS_PER_S // rate)


ACCEPT: Final = Burst(BURST_SECONDS * NS_PER_S, 100 * NS_PER_MS, 10 * NS_PER_S)
"""The burst beyond which connections are closed."""

BLOCK: Final = Burst(UNBLOCKED_SECONDS * NS_PER_S, 20 * NS_PER_MS, 2 * NS_PER_S)
"""The burst beyond which an address is blocked for a moment. During the block the address regains about the reduced
burst. Its waiting connections come again each second, within that burst. An address that makes so many connections only
occasionally has regained its usual burst by the next time."""


class Debt:
    """The time when an address will owe nothing, and the times when it last exceeded its bursts."""

    __slots__ = ("blocked_ns", "closed_ns", "paid_at_ns")

    def __init__(self) -> None:
        self.paid_at_ns = self.closed_ns = self.blocked_ns = NEVER_NS

    def is_over(self, now_ns: int) -> bool:
        """True if the address owes nothing and has its usual bursts."""
        return (
            now_ns >= self.paid_at_ns
            and now_ns - self.closed_ns >= ACCEPT.reduced_for_ns
            and now_ns - self.blocked_ns >= BLOCK.reduced_for_ns
        )


class AcceptRateLimiter:
    """The debts of addresses over all listeners: a connection costs an address its part of a second at the rate, and
    passing time pays for it (the generic cell rate algorithm)."""

    def __init__(
        self,
        limits: Callable[[], BrokerConfig],
        clock: Clock,
        lines: ConnectionLines,
        block: Callable[[str], None],
    ) -> None:
        """`limits` returns the configuration in force; `block` blocks an address for a moment."""
        self._limits = limits
        self._clock = clock
        self._lines = lines
        self._block = block
        self._debts: dict[str, Debt] = {}
        """An address without a debt may be missing."""
        self._searched_ns = 0

    def __len__(self) -> int:
        return len(self._debts)

    def accepts(self, address: Sequence[object]) -> bool:
        """Counts a connection from an address. Returns False if the caller must close it."""
        rate = self._limits().odradek_connection_surge_rate_per_ip
        ip, now_ns = str(address[0]), self._clock.monotonic_ns()
        debt = self._debts.setdefault(ip, Debt())
        paid_at_ns = max(debt.paid_at_ns, now_ns) + NS_PER_S // rate
        owed_ns, since_closed_ns = paid_at_ns - now_ns, now_ns - debt.closed_ns
        if not ACCEPT.allows(owed_ns, since_closed_ns, rate):
            reason = f"{rate} connections a second are the most that its address may make"
            self._lines.rejected(ip, f"{ip}:{address[1]}", reason)
            if since_closed_ns >= ACCEPT.reduced_for_ns:
                debt.paid_at_ns = now_ns + ACCEPT.reduced_ns
            debt.closed_ns = now_ns
            self._block(ip)
            return False
        if not BLOCK.allows(owed_ns, now_ns - debt.blocked_ns, rate):
            debt.blocked_ns = now_ns
            self._block(ip)
        debt.paid_at_ns = paid_at_ns
        if len(self._debts) > REMEMBERED and now_ns - self._searched_ns >= SEARCH_AGAIN_NS:
            self._searched_ns = now_ns
            self._debts = {ip: debt for ip, debt in self._debts.items() if not debt.is_over(now_ns)}
        return True
