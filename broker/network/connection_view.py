"""A client's connection as its listener, its limiters and TLS see it."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from protocol.connection import FrameReader


class Stall(NamedTuple):
    """The state of a connection when it was checked, and the time since when it made no progress."""

    kind: int
    frame: int
    """The number of the frame that the connection receives, or of the answer that it sends."""
    moved_bytes: int
    since_ms: int


class ConnectionView(Protocol):
    """The interface of `ServerConnection` for modules that `connection.py` itself imports."""

    @property
    def ip(self) -> str: ...

    @property
    def peer(self) -> str:
        """The client's address and port, for the log."""

    @property
    def listener_name(self) -> str: ...

    @property
    def transport(self) -> asyncio.Transport: ...

    @property
    def reader(self) -> FrameReader: ...

    stall: Stall | None
    """The stall of the last check."""

    @property
    def answered(self) -> int:
        """Requests that were answered while the connection held memory."""

    @property
    def is_ending(self) -> bool:
        """True if the connection is closing and unsent answers remain."""

    @property
    def is_read_from(self) -> bool: ...

    @property
    def waits_for_memory(self) -> bool:
        """True if its next request gets no more memory."""

    @property
    def holds_scarce_memory(self) -> bool:
        """True if it holds requests while memory is short, and waits for an answer or for its peer."""

    # asyncio's protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...

    # Steps that others make it take.

    def wait_for_place(self) -> None:
        """Makes the connection wait for a place."""

    def admitted(self) -> None:
        """Starts the connection: it has its place."""

    def ask_for_room(self) -> None:
        """Tries again to get memory."""

    def close(self) -> None:
        """Closes once the written bytes are sent."""

    def close_if_idle(self) -> None:
        """Closes the connection if nothing came since the last call."""

    def cut_off(self) -> None:
        """Closes without waiting for the written bytes to be sent."""

    def linger(self) -> None:
        """Reads and answers nothing more, and leaves the socket open."""

    def fail(self, error: BaseException) -> None:
        """Closes the connection because of what the peer sent."""
