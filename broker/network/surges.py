"""Limits the rate at which an address's connections are accepted.

Serving a connection takes the event loop a hundred microseconds, closing it on arrival half of that. An address that
connects ten thousand times a second without using the connections would take most of a core. So its requests to connect
are first blocked for a moment (`unheard.py`): they wait in its own kernel, which tries again a second later. Some
hundreds of clients that start together on one machine stay below the limit; some thousands are served within seconds,
and none is closed. If the kernel can't filter, the surplus is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from broker.clock import NS_PER_MS, NS_PER_S, Clock
from broker.config import BrokerConfig
from broker.network.connection_lines import ConnectionLines

SECONDS: Final = 4
"""An address without connections for this long may make this many seconds' worth at once."""

HEARD_SECONDS: Final = 1
"""Seconds' worth of connections that are accepted without a block. The rest come when the client's kernel tries
again."""


class Allowance(NamedTuple):
    """The connections that an address may make at once, as the time that they take at the allowed rate."""

    calm_ns: int
    loud_ns: int
    """The allowance after an address went beyond `calm_ns`: the connections that wait in its kernel come again
    together, and would go beyond it again."""
    until_calm_ns: int
    """Time for which `loud_ns` applies, before `calm_ns` applies again."""

    def most_ns(self, loud_at_ns: int | None, now_ns: int, rate: int) -> int:
        """Returns the debt that an address may have if it went beyond its allowance at `loud_at_ns`: one connection at
        least."""
        is_calm = self.is_calm(loud_at_ns, now_ns)
        return max(self.calm_ns if is_calm else self.loud_ns, NS_PER_S // rate)

    def is_calm(self, loud_at_ns: int | None, now_ns: int) -> bool:
        return loud_at_ns is None or now_ns - loud_at_ns >= self.until_calm_ns


SERVED: Final = Allowance(SECONDS * NS_PER_S, 100 * NS_PER_MS, 10 * NS_PER_S)
HEARD: Final = Allowance(HEARD_SECONDS * NS_PER_S, 20 * NS_PER_MS, 2 * NS_PER_S)
"""The allowance before an address is blocked. A blocked address regains about `loud_ns` while it is blocked. Its
waiting connections come again each second; an address that connects as often only now and then is calm between."""

REMEMBERED: Final = 10_000
"""Addresses up to which the limiter doesn't look for entries to remove."""
LOOK_AGAIN_NS: Final = 100 * NS_PER_MS


class Newcomer(NamedTuple):
    """A client that has connected."""

    ip: str
    port: int

    @property
    def peer(self) -> str:
        return f"{self.ip}:{self.port}"


def nobody(_: str) -> None:
    """Blocks no address."""


class Surges:
    """The debts of addresses over all listeners: a connection costs an address its part of a second at the rate, and
    passing time pays for it (the generic cell rate algorithm)."""

    def __init__(
        self,
        limits: Callable[[], BrokerConfig],
        clock: Clock,
        lines: ConnectionLines,
        ignore: Callable[[str], None] = nobody,
    ) -> None:
        """`limits` returns the configuration in force; `ignore` blocks an address for a moment."""
        self._limits = limits
        self._clock = clock
        self._lines = lines
        self._ignore = ignore
        self._paid_at_ns: dict[str, int] = {}
        """The time at which an address will owe nothing; an address that owes nothing may be missing."""
        self._closed_ns: dict[str, int] = {}
        """The time at which a connection of an address was last closed; calm addresses may be missing."""
        self._ignored_ns: dict[str, int] = {}
        """The time at which an address was last blocked; calm addresses may be missing."""
        self._looked_ns = 0

    def __len__(self) -> int:
        return len(self._paid_at_ns)

    def takes(self, address: Sequence[object]) -> bool:
        """Counts a connection from an address. Returns False if the caller must close it."""
        rate = self._limits().odradek_connection_surge_rate_per_ip
        ip, now_ns = str(address[0]), self._clock.monotonic_ns()
        paid_at_ns = max(self._paid_at_ns.get(ip, 0), now_ns) + NS_PER_S // rate
        owed_ns = paid_at_ns - now_ns
        closed_ns, ignored_ns = self._closed_ns.get(ip), self._ignored_ns.get(ip)
        if owed_ns > SERVED.most_ns(closed_ns, now_ns, rate):
            newcomer = Newcomer(ip, int(str(address[1])))
            self._lines.turned_away(newcomer, f"{rate} connections a second are the most that its address may make")
            self._closed_ns[ip] = now_ns
            if SERVED.is_calm(closed_ns, now_ns):
                self._paid_at_ns[ip] = now_ns + SERVED.loud_ns
            self._ignore(ip)
            return False
        if owed_ns > HEARD.most_ns(ignored_ns, now_ns, rate):
            self._ignored_ns[ip] = now_ns
            self._ignore(ip)
        self._paid_at_ns[ip] = paid_at_ns
        if len(self._paid_at_ns) > REMEMBERED and now_ns - self._looked_ns >= LOOK_AGAIN_NS:
            self._forget(now_ns)
        return True

    def _forget(self, now_ns: int) -> None:
        """Removes the addresses that owe nothing, and the times of calm addresses."""
        self._looked_ns = now_ns
        self._paid_at_ns = {ip: due_ns for ip, due_ns in self._paid_at_ns.items() if due_ns > now_ns}
        for loud, allowance in ((self._closed_ns, SERVED), (self._ignored_ns, HEARD)):
            for ip in [ip for ip, at_ns in loud.items() if allowance.is_calm(at_ns, now_ns)]:
                del loud[ip]
