"""Connections to other brokers, used by all clients in this project.

Light to import, for commands that live for a moment: nothing outside the standard library, and asyncio only for the
parts that need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.peers.address import Address
    from broker.peers.backoff import Backoff
    from broker.peers.connection import Connection, connect
    from broker.peers.pool import Peer, Peers
    from broker.peers.settings import Settings

__all__ = ["Address", "Backoff", "Connection", "Peer", "Peers", "Settings", "connect"]

_MODULES = {
    "Address": "address",
    "Backoff": "backoff",
    "Connection": "connection",
    "connect": "connection",
    "Peer": "pool",
    "Peers": "pool",
    "Settings": "settings",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
