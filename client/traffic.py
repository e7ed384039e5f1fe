"""Counts the traffic of connections to other nodes, in plain integers that a metrics scrape reads."""

from __future__ import annotations


class PeerTraffic:
    """The counts of all connections that share this object. They only grow."""

    __slots__ = ("received_bytes", "requests", "responses", "sent_bytes")

    def __init__(self) -> None:
        self.requests = 0
        self.responses = 0
        self.sent_bytes = 0
        self.received_bytes = 0
