"""Limits the rate at which an address's connections are accepted.

Serving a connection takes the event loop a hundred microseconds, closing it on arrival half of that. An address that
connects ten thousand times a second without using the connections would take most of a core. So its requests to connect
are first blocked for a moment (`blocked_addresses.py`): they wait in its own kernel, which tries again a second later.
Some hundreds of clients that start together on one machine stay below the limit; some thousands are served within
seconds, and none is closed. If the kernel can't filter, the surplus is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

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


class Burst:
    """The connections that an address may make at once, as the time that they take at the allowed rate.

    An address that exceeds its burst has a smaller burst for a while: the connections that wait in its kernel come
    again together, and would exceed the usual burst again.
    """

    def __init__(self, usual_ns: int, reduced_ns: int, reduced_for_ns: int) -> None:
        self._usual_ns = usual_ns
        self.reduced_ns = reduced_ns
        self.reduced_for_ns = reduced_for_ns
        self._exceeded_ns: dict[str, int] = {}
        """The time at which an address last exceeded its burst; addresses with the usual burst may be missing."""

    def allows(self, ip: str, owed_ns: int, now_ns: int, rate: int) -> bool:
        """True if an address is within its burst, which is at least one connection."""
        burst_ns = self.reduced_ns if self.is_reduced(ip, now_ns) else self._usual_ns
        return owed_ns <= max(burst_ns, NS_PER_S // rate)

    def is_reduced(self, ip: str, now_ns: int) -> bool:
        exceeded_ns = self._exceeded_ns.get(ip)
        return exceeded_ns is not None and now_ns - exceeded_ns < self.reduced_for_ns

    def reduce(self, ip: str, now_ns: int) -> None:
        """Gives an address the smaller burst from now on."""
        self._exceeded_ns[ip] = now_ns

    def forget(self, now_ns: int) -> None:
        """Removes the addresses that have the usual burst."""
        self._exceeded_ns = {ip: at_ns for ip, at_ns in self._exceeded_ns.items() if self.is_reduced(ip, now_ns)}


def accept_burst() -> Burst:
    """Returns the burst beyond which connections are closed."""
    return Burst(BURST_SECONDS * NS_PER_S, 100 * NS_PER_MS, 10 * NS_PER_S)


def block_burst() -> Burst:
    """Returns the burst beyond which an address is blocked for a moment. A blocked address regains about the reduced
    burst while it is blocked. Its waiting connections come again each second; an address that connects as often only
    now and then has the usual burst in between."""
    return Burst(UNBLOCKED_SECONDS * NS_PER_S, 20 * NS_PER_MS, 2 * NS_PER_S)


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
        self._accept_burst = accept_burst()
        self._block_burst = block_burst()
        self._paid_at_ns: dict[str, int] = {}
        """The time at which an address will owe nothing; an address that owes nothing may be missing."""
        self._searched_ns = 0

    def __len__(self) -> int:
        return len(self._paid_at_ns)

    def accepts(self, address: Sequence[object]) -> bool:
        """Counts a connection from an address. Returns False if the caller must close it."""
        rate = self._limits().odradek_connection_surge_rate_per_ip
        ip, now_ns = str(address[0]), self._clock.monotonic_ns()
        paid_at_ns = max(self._paid_at_ns.get(ip, 0), now_ns) + NS_PER_S // rate
        owed_ns = paid_at_ns - now_ns
        if not self._accept_burst.allows(ip, owed_ns, now_ns, rate):
            reason = f"{rate} connections a second are the most that its address may make"
            self._lines.rejected(ip, f"{ip}:{address[1]}", reason)
            if not self._accept_burst.is_reduced(ip, now_ns):
                self._paid_at_ns[ip] = now_ns + self._accept_burst.reduced_ns
            self._accept_burst.reduce(ip, now_ns)
            self._block(ip)
            return False
        if not self._block_burst.allows(ip, owed_ns, now_ns, rate):
            self._block_burst.reduce(ip, now_ns)
            self._block(ip)
        self._paid_at_ns[ip] = paid_at_ns
        if len(self._paid_at_ns) > REMEMBERED and now_ns - self._searched_ns >= SEARCH_AGAIN_NS:
            self._forget(now_ns)
        return True

    def _forget(self, now_ns: int) -> None:
        """Removes the addresses that owe nothing and have the usual bursts."""
        self._searched_ns = now_ns
        self._paid_at_ns = {ip: due_ns for ip, due_ns in self._paid_at_ns.items() if due_ns > now_ns}
        self._accept_burst.forget(now_ns)
        self._block_burst.forget(now_ns)
