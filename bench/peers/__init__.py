"""The peers, in the order in which a round visits them."""

from __future__ import annotations

from collections.abc import Mapping

from bench.peers.brokers import ApacheKafka, Kfake, Odradek, PurePython, WatchedOdradek
from bench.peers.floor import Floor
from bench.peers.peer import PeerProcess

BASE = ApacheKafka.name
"""The peer that ratios are to."""

PEERS: Mapping[str, type[PeerProcess]] = {
    peer.name: peer for peer in (Odradek, ApacheKafka, Kfake, Floor, PurePython, WatchedOdradek)
}

USUAL = tuple(name for name in PEERS if name not in (PurePython.name, WatchedOdradek.name))
"""The peers that are measured when none is named."""
