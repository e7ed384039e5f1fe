"""Limits the objects that the decoder creates for a frame, by the number of array items and tags."""

from __future__ import annotations

from protocol.errors import ProtocolError


class TooManyItems(ProtocolError):
    """A message has more items of arrays and tags than its decoder allows."""


class ItemBudget:
    """The number of items that the rest of a message may have."""

    def __init__(self, most_items: int) -> None:
        self.most_items = self.left = most_items

    def spend(self, items: int) -> None:
        """Subtracts the items of an array or a tag section. Raises TooManyItems."""
        self.left -= items
        if self.left < 0:
            raise TooManyItems(f"more than {self.most_items} items of arrays and tags")
