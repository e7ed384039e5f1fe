"""Connections to other brokers, for all code here that acts as a client.

A `Connection` is one connection, a `Peer` connects when needed, `Peers` has a `Peer` for each node id. Every request
has a deadline and is sent at most once; errors (`protocol/peer_errors.py`) say if it was sent. A request that timed out
keeps its place in the order, so that its late answer is dropped.

Commands that run for a moment import this package, so it imports only the standard library, and asyncio only in the
parts that need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.peers.address import Address
    from broker.peers.connection import Connection, connect
    from broker.peers.pool import Peer, Peers
    from broker.peers.settings import Settings

__all__ = ["Address", "Connection", "Peer", "Peers", "Settings", "connect"]

_MODULES = {
    "Address": "address",
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
