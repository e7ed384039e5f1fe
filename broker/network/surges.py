"""Which connections are closed before they cost anything, and who is not heard: an address that makes too many.

A connection that is served takes the event loop a hundred microseconds, one that is closed as it comes half of that. An
address that makes ten thousand a second and does nothing with them would otherwise have a core, and everybody else what
is left of it. So it is first not heard for a moment (`unheard.py`): its further requests wait in its own kernel, which
tries again a second later. What some hundreds of clients of a machine do that start together is below this; some
thousands are served within seconds, and none is closed. Where the kernel has no such filters, the surplus is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from broker.clock import NS_PER_MS, NS_PER_S, Clock
from broker.config import BrokerConfig
from broker.network.connection_lines import ConnectionLines

SECONDS: Final = 4
"""Who has made none for so long may make so many seconds' worth at once."""

HEARD_SECONDS: Final = 1
"""So many of them without a pause. The rest come when its kernel asks again."""


class Allowance(NamedTuple):
    """The connections that an address may make at once, each as the time in which it may go on making as many."""

    calm_ns: int
    loud_ns: int
    """As long as it goes on with more than that: those that wait in its kernel come again together, and would be a
    surge again."""
    until_calm_ns: int
    """Of keeping to that, until it is calm."""

    def most_ns(self, loud_at_ns: int | None, now_ns: int, rate: int) -> int:
        """Returns what it may owe that went beyond this at such a time: one connection in any case."""
        is_calm = self.is_calm(loud_at_ns, now_ns)
        return max(self.calm_ns if is_calm else self.loud_ns, NS_PER_S // rate)

    def is_calm(self, loud_at_ns: int | None, now_ns: int) -> bool:
        return loud_at_ns is None or now_ns - loud_at_ns >= self.until_calm_ns


SERVED: Final = Allowance(SECONDS * NS_PER_S, 100 * NS_PER_MS, 10 * NS_PER_S)
HEARD: Final = Allowance(HEARD_SECONDS * NS_PER_S, 20 * NS_PER_MS, 2 * NS_PER_S)
"""Some more than this are paid for within the moment that it is not heard. A storm that waits in its kernel comes again
each second; who makes as many at once now and then is calm between."""

REMEMBERED: Final = 10_000
"""Addresses that are remembered without a look at which of them can be forgotten."""
LOOK_AGAIN_NS: Final = 100 * NS_PER_MS


class Newcomer(NamedTuple):
    """Who has connected."""

    ip: str
    port: int

    @property
    def peer(self) -> str:
        return f"{self.ip}:{self.port}"


def nobody(_: str) -> None:
    """Has everybody heard."""


class Surges:
    """The debts of addresses, whatever listener they come by: each connection costs the part of a second that is its
    own at the rate, and is paid with the time that passes (the generic cell rate algorithm)."""

    def __init__(
        self,
        limits: Callable[[], BrokerConfig],
        clock: Clock,
        lines: ConnectionLines,
        ignore: Callable[[str], None] = nobody,
    ) -> None:
        """`limits` is the configuration in force; `ignore` has an address not heard for a moment."""
        self._limits = limits
        self._clock = clock
        self._lines = lines
        self._ignore = ignore
        self._paid_at_ns: dict[str, int] = {}
        """When an address will owe nothing; one that owes nothing may be missing."""
        self._closed_ns: dict[str, int] = {}
        """When one had to be closed last; those that are calm again may be missing."""
        self._ignored_ns: dict[str, int] = {}
        """When it was not to be heard last, the same way."""
        self._looked_ns = 0

    def __len__(self) -> int:
        return len(self._paid_at_ns)

    def takes(self, address: Sequence[object]) -> bool:
        """Counts a connection from an address, and says False where it must be closed."""
        rate = self._limits().odradek_connection_surge_rate_per_ip
        ip, now_ns = str(address[0]), self._clock.monotonic_ns()
        paid_at_ns = max(self._paid_at_ns.get(ip, 0), now_ns) + NS_PER_S // rate
        owed_ns = paid_at_ns - now_ns
        closed_ns, ignored_ns = self._closed_ns.get(ip), self._ignored_ns.get(ip)
        if owed_ns > SERVED.most_ns(closed_ns, now_ns, rate):
            newcomer = Newcomer(ip, int(str(address[1])))
            self._lines.turned_away(newcomer, f"{rate} connections a second are all that its address may go on making")
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
        """Forgets who owes nothing, and who has been calm."""
        self._looked_ns = now_ns
        self._paid_at_ns = {ip: due_ns for ip, due_ns in self._paid_at_ns.items() if due_ns > now_ns}
        for loud, allowance in ((self._closed_ns, SERVED), (self._ignored_ns, HEARD)):
            for ip in [ip for ip, at_ns in loud.items() if allowance.is_calm(at_ns, now_ns)]:
                del loud[ip]
