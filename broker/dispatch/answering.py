"""The interface that answers a listener's frames: the dispatcher implements it, and the interposer of tests."""

from __future__ import annotations

from typing import Protocol

from broker.dispatch.host import Host
from broker.request.context import ClientConnection
from broker.request.pending import Answer


class FrameAnswerer(Protocol):
    """Answers frames for a process."""

    @property
    def host(self) -> Host: ...

    def answer(self, connection: ClientConnection, frame: memoryview) -> Answer:
        """Returns the answer to one request frame. Raises ProtocolError, which closes the connection."""
        ...
