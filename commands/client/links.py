"""The interface through which commands reach brokers, over an event loop or over blocking sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from client.address import Address
from protocol.versions import ANY_VERSION

R = TypeVar("R")
T = TypeVar("T")


class Moments(Protocol):
    """The clock of the commands."""

    def now_ms(self) -> int: ...
    def monotonic_ms(self) -> int: ...


class Link(Protocol):
    """The link to one broker."""

    @property
    def address(self) -> Address: ...

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
        """Sends a request that has no answer."""
        ...


class Links(Protocol):
    """The links to the brokers of a cluster."""

    @property
    def clock(self) -> Moments: ...
    @property
    def bootstrap(self) -> Sequence[Link]:
        """The links to the bootstrap addresses."""
        ...

    def place(self, addresses: Mapping[int, Address]) -> None:
        """Sets the current addresses of all brokers."""
        ...

    def node(self, node: int) -> Link:
        """Returns the link to a broker whose id `place` has named."""
        ...

    async def together(self, awaitables: Iterable[Awaitable[T]]) -> list[T]:
        """Returns the results of all awaitables, which run at the same time on an event loop."""
        ...

    async def pause(self, delay_ms: int) -> None:
        """Waits for `delay_ms`."""
        ...

    async def close(self) -> None: ...
