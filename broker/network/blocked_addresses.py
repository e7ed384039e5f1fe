"""Addresses whose requests to connect are dropped for a moment, on all listening sockets.

For the machine, closing a connection costs nearly as much as serving it: both ends do TCP's handshake and close. A
dropped request costs next to nothing, and the client waits a second. Measured with a process that keeps two hundred
connects under way, on two busy cores: without filters it made 840 to 980 connections a second, as many as it could, and
each took the broker 90 µs although it was closed at once (7.5 % of a core). With filters it made 330 to 390, and the
broker took 3.4 %, however fast the client is. `make bench-storms` has the effect on producers.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from broker.clock import NS_PER_MS, Clock, Timer
from broker.network import syn_filter

BLOCK_MS: Final = 20
MAX_BLOCKED: Final = 64
"""Maximum number of blocked addresses: the kernel compares each request with all of them, and has its own limit."""


class BlockedAddresses:
    """The blocked addresses and the listening sockets. If the kernel has no filters, no address is blocked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sockets: list[socket.socket] = []
        self._until_ns: dict[str, int] = {}
        """The end of each address's block, in order of time."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._until_ns)

    def add(self, sock: socket.socket) -> None:
        """Adds a listening socket."""
        self._sockets.append(sock)

    def block(self, ip: str) -> None:
        """Blocks an address for a moment."""
        if not syn_filter.IS_KNOWN or ip in self._until_ns or len(self._until_ns) >= MAX_BLOCKED:
            return
        self._until_ns[ip] = self._clock.monotonic_ns() + BLOCK_MS * NS_PER_MS
        self._filter()
        if self._timer is None:
            self._timer = self._clock.call_after(BLOCK_MS, self._unblock)

    def close(self) -> None:
        """Removes the sockets."""
        self._sockets.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _unblock(self) -> None:
        """Ends the blocks whose time is over."""
        now_ns = self._clock.monotonic_ns()
        self._until_ns = {ip: until_ns for ip, until_ns in self._until_ns.items() if until_ns > now_ns}
        self._filter()
        first_ns = next(iter(self._until_ns.values()), None)
        left_ms = 0.0 if first_ns is None else (first_ns - now_ns) / NS_PER_MS
        self._timer = None if first_ns is None else self._clock.call_after(left_ms, self._unblock)

    def _filter(self) -> None:
        program = syn_filter.program(self._until_ns)
        # If the system forbids filters, the connections are closed when they come.
        with contextlib.suppress(OSError):
            for sock in self._sockets:
                if self._until_ns:
                    syn_filter.attach(sock, program)
                else:
                    syn_filter.detach(sock)
