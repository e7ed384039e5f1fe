"""Loopback ports that stay reserved before a server starts and during its restarts, until they are released."""

from __future__ import annotations

import socket
from typing import Final

__tracebackhide__ = True

LOOPBACK: Final = "127.0.0.1"


class ReservedPort:
    """A port that no other process gets until it is released.

    A socket is bound to it but doesn't listen. The broker's listeners can still listen on it, because both set
    SO_REUSEADDR; a process that asks for any free port doesn't get it.
    """

    def __init__(self) -> None:
        """Raises OSError if no port is free."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((LOOPBACK, 0))
            self.number: int = self._socket.getsockname()[1]
        except OSError:
            self._socket.close()
            raise

    @property
    def address(self) -> str:
        """Returns HOST:PORT."""
        return f"{LOOPBACK}:{self.number}"

    def release(self) -> None:
        """Releases the port."""
        self._socket.close()
