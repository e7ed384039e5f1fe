"""Which connections are closed before they cost anything: those of an address that goes on making too many.

A connection that is served takes the event loop a hundred microseconds, one that is closed as it comes half of that. An
address that makes ten thousand a second and does nothing with them would otherwise have a core, and everybody else what
is left of it. So it is also not heard for a moment (`unheard.py`): its further requests wait in its own kernel. What a
client does that starts, or some thousands of a machine that start at once, is far below this.
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

BRIEFLY_NS: Final = 20 * NS_PER_MS
"""So much of a second's worth at once is all that it may make as long as it goes on making too many: those that wait in
its kernel come again together, and would be a surge again. It is paid within the moment that it is not heard."""

CALM_NS: Final = 10 * NS_PER_S
"""It goes on with that until it has kept to it for so long."""

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


def is_calm(loud_at_ns: int | None, now_ns: int) -> bool:
    """Tells whether an address has kept to a limit since then, and for long enough."""
    return loud_at_ns is None or now_ns - loud_at_ns >= CALM_NS


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
        was_calm = is_calm(self._closed_ns.get(ip), now_ns)
        if owed_ns > max(SECONDS * NS_PER_S if was_calm else BRIEFLY_NS, NS_PER_S // rate):
            newcomer = Newcomer(ip, int(str(address[1])))
            self._lines.turned_away(newcomer, f"{rate} connections a second are all that its address may go on making")
            self._closed_ns[ip] = now_ns
            if was_calm:
                self._paid_at_ns[ip] = now_ns + BRIEFLY_NS
            self._ignore(ip)
            return False
        was_calm = is_calm(self._ignored_ns.get(ip), now_ns)
        if owed_ns > max(HEARD_SECONDS * NS_PER_S if was_calm else BRIEFLY_NS, NS_PER_S // rate):
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
        self._closed_ns, self._ignored_ns = (
            {ip: at_ns for ip, at_ns in loud.items() if not is_calm(at_ns, now_ns)}
            for loud in (self._closed_ns, self._ignored_ns)
        )
