"""An outcome in the making, for decisions that have several parts."""

from __future__ import annotations

from typing import TypeVar

from coordinator.group.records import AnyRecord, GroupOutcome
from coordinator.runtime import Outcome, Reply, Ticket

A = TypeVar("A")


class Draft:
    """Records and replies as they are found, then the `outcome` of them all."""

    __slots__ = ("records", "replies")

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.replies: list[Reply] = []

    def answer(self, ticket: Ticket[A], answer: A) -> None:
        """Release the answer once the records are committed."""
        self.replies.append(Reply(ticket, answer))

    def outcome(self) -> GroupOutcome:
        return Outcome(self.records, self.replies)
