"""The bound on the objects that a frame becomes: so many items of arrays and tags, however small they are."""

from __future__ import annotations

from protocol.errors import ProtocolError


class ItemBudget:
    """How many items the rest of a message may have."""

    def __init__(self, most_items: int) -> None:
        self.most_items = self.left = most_items

    def spend(self, items: int) -> None:
        """Takes the items of an array or a tag section out of the budget. Raises ProtocolError when they are too
        many."""
        self.left -= items
        if self.left < 0:
            raise ProtocolError(f"more than {self.most_items} items of arrays and tags")
