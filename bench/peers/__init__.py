"""The peers, in the order in which a round visits them."""

from __future__ import annotations

from collections.abc import Mapping

from bench.peers.brokers import ApacheKafka, Kfake, Odradek, OdradekImage, PurePython, WatchedOdradek
from bench.peers.floor import Floor
from bench.peers.peer import PeerProcess
from bench.peers.secured import ApacheKafkaWithEntries, ApacheKafkaWithTls, OdradekWithEntries, OdradekWithTls

BASE = ApacheKafka.name
"""The peer that ratios are relative to."""

USUAL_PEERS: tuple[type[PeerProcess], ...] = (Odradek, ApacheKafka, Kfake, Floor)
NAMED: tuple[type[PeerProcess], ...] = (
    PurePython,
    OdradekImage,
    WatchedOdradek,
    OdradekWithEntries,
    ApacheKafkaWithEntries,
    OdradekWithTls,
    ApacheKafkaWithTls,
)
"""The peers that are measured only if they are named."""
ALL: tuple[type[PeerProcess], ...] = (*USUAL_PEERS, *NAMED)

PEERS: Mapping[str, type[PeerProcess]] = {peer.name: peer for peer in ALL}

USUAL = tuple(peer.name for peer in USUAL_PEERS)
"""The peers that are measured if none is named."""
