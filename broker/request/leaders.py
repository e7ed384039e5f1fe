"""The endpoints of leaders in an answer, which save its client a Metadata request (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from coordinator.cluster.image import Image


class ReachableBroker(NamedTuple):
    """A broker, with the address at which a listener's clients reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None


def nodes(image: Image, listener: str, broker_ids: Iterable[int]) -> list[ReachableBroker]:
    """Returns the brokers that advertise an endpoint for the listener."""
    brokers = image.brokers
    return [
        ReachableBroker(broker_id, endpoint.host, endpoint.port, brokers[broker_id].rack)
        for broker_id in broker_ids
        if broker_id in brokers and (endpoint := brokers[broker_id].endpoint(listener)) is not None
    ]
