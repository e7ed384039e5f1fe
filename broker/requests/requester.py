"""Who sent a request, as the controller is told by a broker that asks it on behalf of its client."""

from __future__ import annotations

from broker.exchange.context import Context
from coordinator.cluster.requester import Requester


def requester_of(context: Context) -> Requester:
    """Returns the client of a request."""
    connection = context.connection
    return Requester(*connection.principal, context.client_id, connection.ip, connection.by_token)
