"""The interface that answers a listener's frames: the dispatcher implements it, and the interposer of tests."""

from __future__ import annotations

from typing import Protocol

from broker.exchange.context import ClientConnection
from broker.exchange.pending import Answer
from broker.requests.host import Host


class FrameAnswerer(Protocol):
    """Answers frames for a process."""

    @property
    def host(self) -> Host: ...

    def answer(self, connection: ClientConnection, frame: memoryview) -> Answer:
        """Returns the answer to one request frame. Raises ProtocolError, which closes the connection."""
        ...
