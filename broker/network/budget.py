"""A budget: an amount that all connections together may hold, such as unread bytes or unauthenticated connections.

Beyond it a connection must be closed: the connection that has waited longest, of the address that holds the most. So an
address that opens many connections takes the budget only from itself.
"""

from __future__ import annotations

from collections import OrderedDict

from broker.network.connection_view import ConnectionView


class AddressHoldings:
    """The amounts that one address's connections hold, the longest waiting first."""

    __slots__ = ("connections", "held")

    def __init__(self) -> None:
        self.held = 0
        self.connections: OrderedDict[ConnectionView, int] = OrderedDict()


class Budget:
    """The connections that hold a part of a limited amount, by address."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._count = 0
        self._addresses: dict[str, AddressHoldings] = {}

    def __len__(self) -> int:
        """Returns the number of connections that hold a part."""
        return self._count

    def add(self, connection: ConnectionView, amount: int = 1) -> None:
        """Adds to the amount that a connection holds. A later addition doesn't change its place in the order."""
        address = self._addresses.get(connection.ip)
        if address is None:
            address = self._addresses[connection.ip] = AddressHoldings()
        before = address.connections.get(connection, 0)
        self._count += not before
        address.connections[connection] = before + amount
        address.held += amount
        self.held += amount

    def discard(self, connection: ConnectionView) -> int:
        """Removes a connection, and returns the amount that it held."""
        address = self._addresses.get(connection.ip)
        amount = 0 if address is None else address.connections.pop(connection, 0)
        if address is not None and amount:
            self._count -= 1
            address.held -= amount
            self.held -= amount
            if not address.connections:
                del self._addresses[connection.ip]
        return amount

    def next_to_close(self) -> ConnectionView:
        """Returns the connection to close for others. Raises ValueError if no connection holds anything."""
        most = max(self._addresses.values(), key=lambda address: address.held)
        return next(iter(most.connections))
