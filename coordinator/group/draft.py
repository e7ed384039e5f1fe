"""Builds the outcome of a decision that has several parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from coordinator.group.records import AnyRecord, GroupOutcome
from coordinator.outcome import Outcome, Reply, Ticket

A = TypeVar("A")


class Draft:
    """The records and replies of a decision so far; `outcome` returns them all."""

    __slots__ = ("_then", "records", "replies")

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.replies: list[Reply] = []
        self._then: Callable[[int], GroupOutcome] | None = None

    def answer(self, ticket: Ticket[A], answer: A) -> None:
        """Releases the answer once the records are committed."""
        self.replies.append(Reply(ticket, answer))

    def after_apply(self, then: Callable[[int], GroupOutcome]) -> None:
        """Sets `then` to decide, (now_ms) → Outcome, once the records are applied. A draft has one such step."""
        assert self._then is None, "two steps after one set of records"
        self._then = then

    def outcome(self) -> GroupOutcome:
        return Outcome(self.records, self.replies, self._then)
