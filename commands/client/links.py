"""How commands reach brokers: by an event loop, or one question after the other. Both look like this to them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from broker.peers.address import Address
from protocol.schema import ANY_VERSION

R = TypeVar("R")
T = TypeVar("T")


class Moments(Protocol):
    """The time, as commands need it."""

    def now_ms(self) -> int: ...
    def monotonic_ms(self) -> int: ...


class Link(Protocol):
    """The way to one broker."""

    async def send(
        self,
        request: object,
        response: type[R],
        *,
        timeout_ms: int,
        max_version: int = ANY_VERSION,
        max_dials: int | None = None,
    ) -> R:
        """Returns the answer. Raises PeerError, ProtocolError."""
        ...

    async def tell(self, request: object, *, timeout_ms: int, max_version: int = ANY_VERSION) -> None:
        """Sends a request that is never answered."""
        ...


class Links(Protocol):
    """The ways to the brokers of a cluster."""

    @property
    def clock(self) -> Moments: ...
    @property
    def bootstrap(self) -> Sequence[Link]:
        """The brokers to begin with."""
        ...

    def place(self, addresses: Mapping[int, Address]) -> None:
        """Says where all brokers are now."""
        ...

    def node(self, node: int) -> Link:
        """Returns the way to the broker of an id that `place` has named."""
        ...

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        """Returns the results of all of these, which run at once where they can."""
        ...

    async def pause(self, delay_ms: int) -> None:
        """Returns once so much time has passed."""
        ...

    async def close(self) -> None: ...
