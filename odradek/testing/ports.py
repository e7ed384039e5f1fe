"""Ports of the loopback that stay one's own, before a server begins and over its restarts, until they are released."""

from __future__ import annotations

import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"


class ReservedPort:
    """A port that nobody else gets while this is held.

    A socket is bound to it and does not listen. By SO_REUSEADDR, which the broker's listeners have too, they may listen
    there all the same; for somebody who asks for any free port it is taken.
    """

    def __init__(self) -> None:
        """Raises OSError where there are no ports left."""
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
        """Lets others have the port."""
        self._socket.close()
