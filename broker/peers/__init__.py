"""Connections to other brokers, over which everything here that is a client speaks.

Light to import, for commands that live for a moment: asyncio, and nothing outside the standard library.
"""

from __future__ import annotations

from broker.peers.address import Address
from broker.peers.backoff import Backoff
from broker.peers.connection import Connection, connect
from broker.peers.pool import Peer, Peers
from broker.peers.settings import Settings

__all__ = ["Address", "Backoff", "Connection", "Peer", "Peers", "Settings", "connect"]
