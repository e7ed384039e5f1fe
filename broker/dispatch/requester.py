"""The client of a request, as a broker passes it to the controller."""

from __future__ import annotations

from broker.request.context import Context
from coordinator.cluster.requester import Requester


def requester_of(context: Context) -> Requester:
    """Returns the client of a request."""
    connection = context.connection
    return Requester(*connection.principal, context.client_id, connection.ip, connection.by_token)
